import type { ComponentChildren, ComponentProps, JSX } from 'preact';
import { chooseTheme, isDark } from '../charts/palette.ts';

function Icon({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      {children}
    </svg>
  );
}

const filled = (path: string, rule?: 'evenodd') => () => (
  <Icon>
    <path d={path} fill-rule={rule} />
  </Icon>
);

export const PlayIcon = filled('M4 2.6v10.8L13.2 8z');
export const PauseIcon = filled('M3.5 2.5h3.2v11H3.5zm5.8 0h3.2v11H9.3z');
export const StepIcon = filled('M3 2.6v10.8L10.4 8zm8.3 0h2.2v10.8h-2.2z');
export const RestartIcon = filled('M8 2.2a5.8 5.8 0 1 1-5.5 4l1.9.6A3.8 3.8 0 1 0 8 4.2v2.4L3.9 3.3 8 0z');
const SunIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="3.2" />
    <path
      d="M8 1v1.8M8 13.200v1.8M1 8h1.8M13.200 8H15M3.050 3.050l1.300 1.300M11.650 11.650l1.300 1.300M3.050 12.950l1.300-1.300M11.650 4.350l1.300-1.300"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
    />
  </Icon>
);
const MoonIcon = filled('M13.700 10.300A6.200 6.200 0 0 1 5.700 2.300a6.200 6.200 0 1 0 8 8z');
export const CalmIcon = filled('M6.500 12.300 2.300 8.100l1.500-1.500 2.700 2.700 5.700-5.700 1.500 1.500z');
export const StrainedIcon = filled(
  'M8 1.600 15.200 14H.8zM7.100 6v4h1.800V6zm0 5.200V13h1.800v-1.800z',
  'evenodd',
);
export const FailingIcon = filled(
  'M5 1h6l4 4v6l-4 4H5l-4-4V5zm2.100 3.200v5h1.800v-5zm0 6.300v1.800h1.800v-1.800z',
  'evenodd',
);
export const PlusIcon = filled('M7 2.500h2V7h4.500v2H9v4.500H7V9H2.500V7H7z');
export const CloseIcon = filled('m4 2.600 4 4 4-4L13.400 4l-4 4 4 4-1.400 1.400-4-4-4 4L2.600 12l4-4-4-4z');
export const SaveIcon = filled('M7 2h2v5.500h2.700L8 11.200 4.300 7.500H7zM2.500 12.500h11v1.700h-11z');
export const OptionsIcon = filled(
  'M1.500 4h6.200a2 2 0 0 1 3.900 0h2.900v1.600h-2.900a2 2 0 0 1-3.900 0H1.500zm0 6.400h1.900a2 2 0 0 1 3.900 0h7.200V12H7.300a2 2 0 0 1-3.900 0H1.500z',
);
export const ShareIcon = filled(
  'M8 1.200 12 5l-1.200 1.300-1.900-1.800v6.300H7.100V4.500L5.200 6.300 4 5zM2.500 8.500h1.800v4.700h7.400V8.500h1.800V15h-11z',
);
export const HistoryIcon = filled(
  'M8 1.200a6.800 6.800 0 1 1 0 13.600A6.800 6.800 0 0 1 8 1.200zm0 1.900a4.900 4.900 0 1 0 0 9.800 4.900 4.900 0 0 0 0-9.800zM7.100 4.500h1.800v3.100l2.300 2.300-1.300 1.300-2.800-2.800z',
  'evenodd',
);
export const CupIcon = filled(
  'M4 1.500h8V3h2.500v1.500A3.500 3.500 0 0 1 11.600 8 4 4 0 0 1 9 9.900V12h2.500v2.500h-7V12H7V9.900A4 4 0 0 1 4.400 8a3.500 3.500 0 0 1-2.900-3.500V3H4zm-1 3a2 2 0 0 0 1 1.700zm9 1.700a2 2 0 0 0 1-1.700h-1z',
);
export const CodeIcon = filled(
  'M5.200 3.200 6.500 4.500 3 8l3.500 3.500-1.300 1.300L.4 8zm5.600 0L15.600 8l-4.800 4.800-1.300-1.300L13 8 9.500 4.500z',
);
export const BookIcon = filled(
  'M1 2.500h5a2.500 2.500 0 0 1 2 1 2.500 2.500 0 0 1 2-1h5v11h-5.500L8 15l-1.500-1.500H1zM2.800 4.300v7.400h4.300V5.300a1 1 0 0 0-1-1zm10.400 0H9.900a1 1 0 0 0-1 1v6.400h4.300z',
  'evenodd',
);
export const HelpIcon = filled(
  'M4.300 5.500a3.700 3.700 0 1 1 5.500 3.200c-.7.400-.9.700-.9 1.400v.400H7.100v-.500c0-1.400.5-2 1.600-2.700a1.900 1.900 0 1 0-2.600-1.800zm2.700 6.300h2v2.200H7z',
);

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
    <Button
      look="quiet square"
      text={dark ? <SunIcon /> : <MoonIcon />}
      title={dark ? 'Light colours' : 'Dark colours'}
      aria-label={dark ? 'Use light colours' : 'Use dark colours'}
      onClick={() => chooseTheme(dark ? 'light' : 'dark')}
    />
  );
}

interface ButtonProps extends ComponentProps<'button'> {
  /** Its classes beside `button`; `bare` for one that is only an icon. */
  readonly look?: string;
  readonly text: ComponentChildren;
}

export function Button({ look = '', text, type = 'button', ...rest }: ButtonProps): JSX.Element {
  return (
    <button type={type} class={look === 'bare' ? look : `button ${look}`} {...rest}>
      {text}
    </button>
  );
}
