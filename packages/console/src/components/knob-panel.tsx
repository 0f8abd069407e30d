import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import type { Knob } from '../api/action-schema.ts';
import { KNOB_GUIDE } from '../llmserve/knob-guide.ts';
import { BY_HAND } from '../state/console-state.ts';
import { nearestStop, sliderStops } from '../state/knob-values.ts';
import { useConsole } from './console-context.ts';
import { amount, percent, words } from './format.ts';
import { tip } from './tooltip.tsx';

/** The knobs of the server: turned here by hand, or shown as the policy turns them. */
export function KnobPanel(): JSX.Element {
  const state = useConsole();
  const byHand = state.driver.value === BY_HAND;
  const policy = state.policies.value.find(({ name }) => name === state.driver.value);
  return (
    <section class="panel knobs" aria-label="Knobs">
      <header class="panel-head">
        <h2>Knobs</h2>
        {byHand ? (
          <p class="fine">You turn them: they hold for the next window.</p>
        ) : (
          <>
            <p class="fine" {...tip(policy?.description)}>
              Turned by the policy
            </p>
            <button type="button" class="button small" onClick={() => state.chooseDriver(BY_HAND)}>
              Take over
            </button>
          </>
        )}
      </header>
      <div class="knob-list">
        {state.knobs.value.map((knob) => (
          <KnobRow key={knob.name} knob={knob} locked={!byHand} />
        ))}
      </div>
    </section>
  );
}

function KnobRow({ knob, locked }: { knob: Knob; locked: boolean }): JSX.Element {
  const guide = KNOB_GUIDE[knob.name];
  const state = useConsole();
  const { value } = useComputed(() => state.knobValues.value[knob.name]);
  const label = guide?.label ?? words(knob.name);
  return (
    <div class="knob">
      <div class="knob-head">
        <span class="knob-label" {...tip(knob.description)}>
          {label}
        </span>
        {knob.kind === 'range' && <output class="knob-value">{knobText(knob, value)}</output>}
      </div>
      <KnobControl knob={knob} label={label} value={value} locked={locked} />
      {guide ? (
        <ul class="trade" aria-label={`What ${label} buys and costs`}>
          <li class="buys">{guide.buys}</li>
          <li class="costs">{guide.costs}</li>
        </ul>
      ) : (
        <p class="trade">{knob.description}</p>
      )}
    </div>
  );
}

interface KnobControlProps {
  readonly knob: Knob;
  readonly label: string;
  readonly value: unknown;
  readonly locked: boolean;
}

function KnobControl({ knob, label, value, locked }: KnobControlProps): JSX.Element {
  const state = useConsole();
  switch (knob.kind) {
    case 'range': {
      const stops = sliderStops(knob, KNOB_GUIDE[knob.name]?.doubling === true);
      const index = nearestStop(stops, Number(value));
      return (
        <input
          type="range"
          name={knob.name}
          aria-label={label}
          aria-valuetext={knobText(knob, value)}
          min={0}
          max={stops.length - 1}
          step={1}
          value={index}
          disabled={locked}
          style={{ '--filled': `${(index / (stops.length - 1)) * 100}%` }}
          onInput={(event) => state.turn(knob.name, stops[event.currentTarget.valueAsNumber])}
        />
      );
    }
    case 'choice':
      return (
        <div class="segments" role="radiogroup" aria-label={label}>
          {knob.values.map((option) => (
            <label key={option}>
              <input
                type="radio"
                name={knob.name}
                value={option}
                checked={option === String(value)}
                disabled={locked}
                onChange={() => state.turn(knob.name, option)}
              />
              <span>{option}</span>
            </label>
          ))}
        </div>
      );
    case 'switch':
      return (
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            aria-checked={value === true}
            name={knob.name}
            aria-label={label}
            checked={value === true}
            disabled={locked}
            onChange={(event) => state.turn(knob.name, event.currentTarget.checked)}
          />
          <span aria-hidden="true">{value === true ? 'On' : 'Off'}</span>
        </label>
      );
  }
}

function knobText(knob: Knob, value: unknown): string {
  const guide = KNOB_GUIDE[knob.name];
  const figure =
    typeof value !== 'number'
      ? String(value)
      : guide?.format === 'percent'
        ? percent(value)
        : knob.kind === 'range' && knob.integer
          ? String(value)
          : amount(value);
  return guide?.unit ? `${figure} ${guide.unit}` : figure;
}
