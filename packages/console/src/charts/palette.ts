import { computed, type Signal, signal } from '@preact/signals';
import { keep, kept } from '../state/kept.ts';

/** The colours that data is drawn in; each is a `--tone-*` variable of the style sheets. */
const TONES = [
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
  'run0',
  'run1',
  'run2',
  'run3',
] as const;
export type Tone = (typeof TONES)[number];
type Palette = Readonly<Record<Tone, string>>;

type Theme = 'auto' | 'dark' | 'light';
const STORAGE_KEY = 'servegym.theme';

/** The person's choice; `auto` follows the system. */
const theme: Signal<Theme> = signal('auto');
const systemChanges = signal(0);

/** The colours as the style sheets give them now, for canvases. */
export const palette = computed<Palette>(() => {
  void theme.value;
  void systemChanges.value;
  // Only a used colour is one that canvases understand: the variables may hold functions of the colour scheme.
  const probe = document.body.appendChild(document.createElement('i'));
  const style = getComputedStyle(probe);
  const colors = TONES.map((tone) => {
    probe.style.color = `var(--tone-${tone})`;
    return [tone, style.color];
  });
  probe.remove();
  return Object.fromEntries(colors) as Palette;
});

export function chooseTheme(next: Theme): void {
  applyTheme(next);
  keep(STORAGE_KEY, next);
}

/** Restores the choice and follows the system from now on. */
export function startTheme(): void {
  const stored = kept(STORAGE_KEY);
  applyTheme(stored === 'dark' || stored === 'light' ? stored : 'auto');
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    systemChanges.value++;
  });
}

/** The page is dark now. */
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

/** Look of the runs side by side, by place: told apart by colour and by dash pattern (CSS pixels). */
export const RUN_LOOKS: readonly { readonly tone: Tone; readonly dash: readonly number[] }[] = [
  { tone: 'run0', dash: [] },
  { tone: 'run1', dash: [7, 4] },
  { tone: 'run2', dash: [2, 3] },
  { tone: 'run3', dash: [9, 3, 2, 3] },
];

const CLASS_TONES: readonly Tone[] = ['interactive', 'batch', 'besteffort'];

/** The tone of a request class: that of its name, else one by its place. */
export function toneOfClass(name: string, index: number): Tone {
  return (
    CLASS_TONES.find((tone) => tone === name.replace('_', '')) ?? CLASS_TONES[index % CLASS_TONES.length]
  );
}
