// Plays a run: step after step, until its end.

import { button, make } from "./dom";

/** Steps per second. */
const SPEEDS = [1, 2, 5, 10, 25];

export class Player {
  readonly button: HTMLButtonElement;
  readonly speed = make("select");
  private timer = 0;

  /** `step` moves by one step, and returns whether such a step existed. */
  constructor(private readonly step: () => boolean) {
    this.button = button("play", "play, pause (Space)", () => this.toggle());
    this.button.setAttribute("aria-pressed", "false");
    this.speed.setAttribute("aria-label", "Steps a second");
    this.speed.title = "steps a second (< >)";
    for (const speed of SPEEDS) {
      const option = make("option", "", `${speed}/s`);
      option.value = String(speed);
      this.speed.append(option);
    }
    this.speed.value = "2";
    this.speed.addEventListener("change", () => this.restart());
  }

  get isPlaying(): boolean {
    return this.timer !== 0;
  }

  toggle(): void {
    if (this.isPlaying) this.stop();
    else this.play();
  }

  stop(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.show();
  }

  /** Chooses the next faster or slower speed. */
  faster(by: 1 | -1): void {
    const at = SPEEDS.indexOf(Number(this.speed.value)) + by;
    this.speed.value = String(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))]);
    this.restart();
  }

  private play(): void {
    this.timer = window.setInterval(() => {
      if (!this.step()) this.stop();
    }, 1000 / Number(this.speed.value));
    this.show();
  }

  private restart(): void {
    if (!this.isPlaying) return;
    this.stop();
    this.play();
  }

  private show(): void {
    this.button.textContent = this.isPlaying ? "pause" : "play";
    this.button.setAttribute("aria-pressed", String(this.isPlaying));
  }
}
