import { computed, signal } from '@preact/signals';
import { keep, kept } from '../state/kept.ts';

/** The colours that data is drawn in; each is a variable of the style sheets. */
const TONES = [
  ...(['text', 'muted', 'line', 'surface', 'limit'] as const),
  ...(['arrivals', 'waiting', 'running', 'median', 'tail'] as const),
  // What fills the memory of a GPU, and the request classes.
  ...(['weights', 'overhead', 'draft', 'kv', 'pool', 'tenant'] as const),
  ...(['interactive', 'batch', 'besteffort'] as const),
];
export type Tone = (typeof TONES)[number];
type Palette = Readonly<Record<Tone, string>>;

/** A colour scheme of the style sheets. */
type Theme = 'dark' | 'light';
const STORAGE_KEY = 'servegym.theme';

/** The person's choice; without one the page follows the system. */
const theme = signal<Theme>();
const systemIsDark = signal(false);
/** The page is dark now. */
export const isDark = computed(() => (theme.value ? theme.value === 'dark' : systemIsDark.value));

/** The colours as the style sheets give them now, for canvases. */
export const palette = computed<Palette>(() => {
  void isDark.value;
  // Only a used colour is one that canvases understand: the variables may hold functions of the colour scheme.
  const probe = document.body.appendChild(document.createElement('i'));
  const style = getComputedStyle(probe);
  const colors = TONES.map((tone) => {
    probe.style.color = `var(--${tone})`;
    return [tone, style.color];
  });
  probe.remove();
  return Object.fromEntries(colors) as Palette;
});

export function chooseTheme(next: Theme): void {
  document.documentElement.style.colorScheme = next;
  theme.value = next;
  keep(STORAGE_KEY, next);
}

/** Restores the choice and follows the system from now on. */
export function startTheme(): void {
  const stored = kept(STORAGE_KEY);
  if (stored === 'dark' || stored === 'light') chooseTheme(stored);
  const system = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => {
    systemIsDark.value = system.matches;
  };
  follow();
  system.addEventListener('change', follow);
}

/** Look of the runs side by side, by place: told apart by colour and by dash pattern (CSS pixels). */
export const RUN_LOOKS: readonly { readonly tone: Tone; readonly dash: readonly number[] }[] = [
  { tone: 'median', dash: [] },
  { tone: 'waiting', dash: [7, 4] },
  { tone: 'running', dash: [2, 3] },
  { tone: 'tail', dash: [9, 3, 2, 3] },
];

const CLASS_TONES: readonly Tone[] = ['interactive', 'batch', 'besteffort'];

/** The tone of a request class: that of its name, else one by its place. */
export function toneOfClass(name: string, index: number): Tone {
  return (
    CLASS_TONES.find((tone) => tone === name.replace('_', '')) ?? CLASS_TONES[index % CLASS_TONES.length]
  );
}
