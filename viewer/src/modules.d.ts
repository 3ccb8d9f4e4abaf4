declare module "*.css" {}
declare module "*?raw" {
  const text: string;
  export default text;
}
declare module "*?worker&inline" {
  const script: new () => Worker;
  export default script;
}
interface ImportMeta {
  glob<T>(patterns: string[], options: { query: string; import: string; eager: true }): Record<string, T>;
}
