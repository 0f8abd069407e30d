import { useSignal } from '@preact/signals';
import type { ComponentChildren, ComponentProps, JSX } from 'preact';
import { chooseTheme, isDark } from '../charts/palette.ts';
import paths from './icons.json' with { type: 'json' };

export type IconName = keyof typeof paths;

/** Paths that cross themselves. */
const EVEN_ODD: readonly IconName[] = ['strained', 'failing', 'book'];

/** An icon, of the one path that fills it, with a word below that narrow screens leave out. */
export function Icon({ name, label }: { name: IconName; label?: string }): JSX.Element {
  return (
    <>
      <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={paths[name]} fill-rule={EVEN_ODD.includes(name) ? 'evenodd' : undefined} />
      </svg>
      {label && <span class="icon-label">{label}</span>}
    </>
  );
}

/** Requests queue into a batch. */
function BrandMark(): JSX.Element {
  return (
    <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
      <g fill="var(--waiting)">
        <rect x="2" y="13" width="6" height="6" rx="1.5" opacity=".45" />
        <rect x="10" y="13" width="6" height="6" rx="1.5" />
      </g>
      <g fill="var(--running)">
        <rect x="19" y="3" width="11" height="7" rx="1.500" />
        <rect x="19" y="12.500" width="11" height="7" rx="1.500" />
        <rect x="19" y="22" width="11" height="7" rx="1.500" opacity=".45" />
      </g>
    </svg>
  );
}

interface PageHeaderProps {
  readonly title: string;
  readonly subtitle?: string;
  /** What the subtitle shows on hover. */
  readonly definition?: string;
  readonly children?: ComponentChildren;
  readonly links?: ComponentChildren;
}

export function PageHeader({ title, subtitle, definition, children, links }: PageHeaderProps): JSX.Element {
  return (
    <header class="top-bar row wrap">
      <div class="brand row">
        <BrandMark />
        <div>
          <h1>{title}</h1>
          {subtitle && (
            <p class="muted nowrap clipped" data-tip={definition}>
              {subtitle}
            </p>
          )}
        </div>
      </div>
      {children}
      <nav class="links row" aria-label="More">
        {links}
        <ThemeButton />
      </nav>
    </header>
  );
}

function ThemeButton(): JSX.Element {
  const dark = isDark.value;
  return (
    <Button
      look="quiet square"
      text={dark ? <Icon name="sun" label="Light" /> : <Icon name="moon" label="Dark" />}
      title={dark ? 'Light colours' : 'Dark colours'}
      aria-label={dark ? 'Use light colours' : 'Use dark colours'}
      onClick={() => chooseTheme(dark ? 'light' : 'dark')}
    />
  );
}

interface ButtonProps extends ComponentProps<'button'> {
  /** Its classes beside `button`. */
  readonly look?: string;
  readonly text: ComponentChildren;
}

export function Button({ look = '', text, type = 'button', ...rest }: ButtonProps): JSX.Element {
  return (
    <button type={type} class={`button ${look}`} {...rest}>
      {text}
    </button>
  );
}

type SelectProps = Pick<
  ComponentProps<'select'>,
  'aria-label' | 'disabled' | 'id' | 'name' | 'title' | 'value'
> & {
  readonly options: readonly { value: string | number; text: string; title?: string; disabled?: boolean }[];
  readonly onChoose: (value: string, list: HTMLSelectElement) => void;
};

export function Select({ options, onChoose, ...rest }: SelectProps): JSX.Element {
  return (
    <select {...rest} onChange={({ currentTarget }) => onChoose(currentTarget.value, currentTarget)}>
      {options.map(({ text, ...option }) => (
        <option key={option.value} {...option}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface DisclosureProps {
  readonly look: string;
  readonly summary: JSX.Element;
  readonly children: ComponentChildren;
}

/** Something to open. What is in it is made when it is opened. */
export function Disclosure({ look, summary, children }: DisclosureProps): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <details
      class={look}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      {summary}
      {isOpen.value && children}
    </details>
  );
}
