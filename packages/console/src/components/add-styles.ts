/** Adds style sheets that come with a part of the page which is fetched later. */
export function addStyles(css: string): void {
  const element = document.createElement('style');
  element.textContent = css;
  document.head.append(element);
}
