import { viteSingleFile } from "vite-plugin-singlefile";

export default {
  plugins: [viteSingleFile()],
  build: { outDir: "dist", emptyOutDir: true, target: "es2022", reportCompressedSize: false },
};
