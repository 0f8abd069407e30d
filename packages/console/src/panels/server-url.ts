/** Address of the page's server, as clients are given it: without a slash at its end. */
export function serverUrl(): string {
  return new URL('..', document.baseURI).href.replace(/\/$/, '');
}
