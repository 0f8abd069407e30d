import type { ComponentChildren, JSX } from 'preact';

function Icon({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      {children}
    </svg>
  );
}

export const PlayIcon = () => (
  <Icon>
    <path d="M4 2.6v10.8L13.2 8z" />
  </Icon>
);
export const PauseIcon = () => (
  <Icon>
    <path d="M3.5 2.5h3.2v11H3.5zm5.8 0h3.2v11H9.3z" />
  </Icon>
);
export const StepIcon = () => (
  <Icon>
    <path d="M3 2.6v10.8L10.4 8zm8.3 0h2.2v10.8h-2.2z" />
  </Icon>
);
export const RestartIcon = () => (
  <Icon>
    <path d="M8 2.2a5.8 5.8 0 1 1-5.5 4l1.9.6A3.8 3.8 0 1 0 8 4.2v2.4L3.9 3.3 8 0z" />
  </Icon>
);
export const SunIcon = () => (
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
export const MoonIcon = () => (
  <Icon>
    <path d="M13.700 10.300A6.200 6.200 0 0 1 5.700 2.300a6.200 6.200 0 1 0 8 8z" />
  </Icon>
);
export const CalmIcon = () => (
  <Icon>
    <path d="M6.500 12.300 2.300 8.100l1.500-1.500 2.700 2.700 5.700-5.700 1.500 1.500z" />
  </Icon>
);
export const StrainedIcon = () => (
  <Icon>
    <path d="M8 1.600 15.200 14H.8zM7.100 6v4h1.800V6zm0 5.200V13h1.800v-1.800z" fill-rule="evenodd" />
  </Icon>
);
export const FailingIcon = () => (
  <Icon>
    <path
      d="M5 1h6l4 4v6l-4 4H5l-4-4V5zm2.100 3.200v5h1.800v-5zm0 6.300v1.800h1.800v-1.800z"
      fill-rule="evenodd"
    />
  </Icon>
);
