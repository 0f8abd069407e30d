import type { JSX } from 'preact';
import { chooseTheme, isDark } from '../charts/palette.ts';
import { MoonIcon, SunIcon } from './icons.tsx';

/** Requests queue into a batch. */
export function BrandMark(): JSX.Element {
  return (
    <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
      <g fill="var(--tone-waiting)">
        <rect x="2" y="13" width="6" height="6" rx="1.5" opacity=".45" />
        <rect x="10" y="13" width="6" height="6" rx="1.5" />
      </g>
      <g fill="var(--tone-running)">
        <rect x="19" y="3" width="11" height="7" rx="1.500" />
        <rect x="19" y="12.500" width="11" height="7" rx="1.500" />
        <rect x="19" y="22" width="11" height="7" rx="1.500" opacity=".45" />
      </g>
    </svg>
  );
}

/** Changes between light and dark colours. */
export function ThemeButton(): JSX.Element {
  const dark = isDark();
  return (
    <button
      type="button"
      class="button quiet square"
      title={dark ? 'Light colours' : 'Dark colours'}
      aria-label={dark ? 'Use light colours' : 'Use dark colours'}
      onClick={() => chooseTheme(dark ? 'light' : 'dark')}
    >
      {dark ? <SunIcon /> : <MoonIcon />}
    </button>
  );
}
