import type { JSX } from 'preact';

interface TabsProps<Name extends string> {
  readonly label: string;
  readonly names: readonly Name[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
}

/** A row of names, one of them chosen. */
export function Tabs<Name extends string>({ label, names, chosen, onChoose }: TabsProps<Name>): JSX.Element {
  return (
    <div class="segments tabs" role="radiogroup" aria-label={label}>
      {names.map((name) => (
        <label key={name}>
          <input type="radio" name={label} checked={chosen === name} onChange={() => onChoose(name)} />
          <span>{name}</span>
        </label>
      ))}
    </div>
  );
}
