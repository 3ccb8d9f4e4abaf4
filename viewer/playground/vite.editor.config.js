// `editor.js`: the editor of CodeMirror as a script of its own.
export default {
  root: import.meta.dirname,
  build: {
    outDir: "../dist/editor",
    emptyOutDir: true,
    target: "es2022",
    reportCompressedSize: false,
    lib: { entry: "codemirror.ts", formats: ["iife"], name: "ReconvergeEditor", fileName: () => "editor.js" },
  },
};
