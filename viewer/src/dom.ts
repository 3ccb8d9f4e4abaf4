// Functions that create elements.

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** A button whose title names its effect and its key. */
export function button(text: string, title: string, act: () => void): HTMLButtonElement {
  const element = make("button", "", text);
  element.type = "button";
  element.title = title;
  element.setAttribute("aria-label", title);
  element.addEventListener("click", act);
  return element;
}
