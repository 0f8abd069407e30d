/** Reads what the browser keeps under a name. `null` where nothing is kept, or may be. */
export function kept(name: string, storage: () => Storage = () => localStorage): string | null {
  try {
    return storage().getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text. Storage is closed to embedded pages in some browsers; it then lasts as long as the page. */
export function keep(name: string, value: string, storage: () => Storage = () => localStorage): void {
  try {
    storage().setItem(name, value);
  } catch {}
}

const TOKEN = 'servegym.token';

/** The token that was entered in this tab. */
export function keptToken(): string | undefined {
  return kept(TOKEN, () => sessionStorage) ?? undefined;
}

export function keepToken(token: string): void {
  keep(TOKEN, token, () => sessionStorage);
}
