// The playground's page as one file, without the editor and the engine, which stand beside it.
import { viteSingleFile } from "vite-plugin-singlefile";

export default {
  root: import.meta.dirname,
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  server: { fs: { allow: ["../.."] } },
  build: { outDir: "../dist/playground", emptyOutDir: true, target: "es2022", reportCompressedSize: false },
};
