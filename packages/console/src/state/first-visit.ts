const STORAGE_KEY = 'servegym.visited';

/** True once in a browser. Where nothing can be kept no visit is the first, so that none is welcomed again and again. */
export function isFirstVisit(): boolean {
  try {
    if (localStorage.getItem(STORAGE_KEY) !== null) return false;
    localStorage.setItem(STORAGE_KEY, 'yes');
    return true;
  } catch {
    return false;
  }
}
