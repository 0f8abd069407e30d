const STORAGE_KEY = 'servegym.visited';

/** True once in a browser for each environment. Where nothing can be kept no visit is the first. */
export function isFirstVisit(environment: string): boolean {
  const key = `${STORAGE_KEY}.${environment}`;
  try {
    if (localStorage.getItem(key) !== null) return false;
    localStorage.setItem(key, 'yes');
    return true;
  } catch {
    return false;
  }
}
