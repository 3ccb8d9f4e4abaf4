// The worker that runs programs.

import { answering } from "./module";

let answer: ((request: string) => string) | undefined;

self.onmessage = ({ data }: MessageEvent<{ module?: WebAssembly.Module; id: number; request: string }>) => {
  try {
    if (data.module) {
      answer = answering(data.module);
    } else {
      self.postMessage({ id: data.id, text: answer!(data.request) });
    }
  } catch (error) {
    self.postMessage({ id: data.id, fault: error instanceof Error ? error.message : String(error) });
  }
};
