import { computed, type Signal, signal } from '@preact/signals';

/** The colours that data is drawn in; each is a `--tone-*` variable of the style sheets. */
export const TONES = [
  'text',
  'muted',
  'line',
  'surface',
  'waiting',
  'running',
  'tokens',
  'arrivals',
  'median',
  'tail',
  'limit',
  'weights',
  'overhead',
  'draft',
  'kv',
  'pool',
  'tenant',
  'interactive',
  'batch',
  'besteffort',
] as const;
export type Tone = (typeof TONES)[number];
export type Palette = Readonly<Record<Tone, string>>;

export type Theme = 'auto' | 'dark' | 'light';
const STORAGE_KEY = 'servegym.theme';

/** What the person chose; `auto` follows the system. */
export const theme: Signal<Theme> = signal('auto');
const systemChanges = signal(0);

/** The colours as the style sheets give them now, for canvases. */
export const palette = computed<Palette>(() => {
  void theme.value;
  void systemChanges.value;
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    TONES.map((tone) => [tone, style.getPropertyValue(`--tone-${tone}`).trim()]),
  ) as Palette;
});

export function chooseTheme(next: Theme): void {
  applyTheme(next);
  try {
    localStorage.setItem(STORAGE_KEY, next);
  } catch {
    // Storage is closed to embedded pages in some browsers; the choice then lasts as long as the page.
  }
}

/** Restores the choice and follows the system from now on. */
export function startTheme(): void {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(STORAGE_KEY);
  } catch {
    stored = null;
  }
  applyTheme(stored === 'dark' || stored === 'light' ? stored : 'auto');
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    systemChanges.value++;
  });
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  void systemChanges.value;
  return (
    theme.value === 'dark' || (theme.value === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches)
  );
}

function applyTheme(next: Theme): void {
  if (next === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  theme.value = next;
}

/** The tone of a request class. */
export function toneOfClass(name: string, index: number): Tone {
  const tones: readonly Tone[] = ['interactive', 'batch', 'besteffort'];
  const known: Readonly<Record<string, Tone>> = {
    interactive: 'interactive',
    batch: 'batch',
    best_effort: 'besteffort',
  };
  return known[name] ?? tones[index % tones.length];
}
