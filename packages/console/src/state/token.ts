const STORAGE_KEY = 'servegym.token';

/** The token that was entered in this tab. */
export function keptToken(): string | undefined {
  try {
    return sessionStorage.getItem(STORAGE_KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepToken(token: string): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, token);
  } catch {
    // Storage is closed to embedded pages in some browsers; the token then lasts as long as the page.
  }
}
