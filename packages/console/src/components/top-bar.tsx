import type { JSX } from 'preact';
import { isKnown, LARGEST_SEED } from '../state/choices.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel, PANELS, type PanelName } from '../state/page-signals.ts';
import { BrandMark, Button, Disclosure, Icon, type IconName, ThemeButton } from './controls.tsx';
import { LazyOptionsMenu } from './lazy.tsx';
import { Transport } from './transport.tsx';

/** Task, seed and scenario, playback, and the panels. */
export function TopBar(): JSX.Element {
  const state = useConsole();
  const environment = state.environment.value;
  const isOurs = isKnown(environment);
  const task = state.chosenTask.value;
  return (
    <header class="top-bar row wrap">
      <div class="brand row">
        <BrandMark />
        <div>
          <h1>ServeGym</h1>
          <p data-tip={environment?.description}>
            {environment
              ? `${environment.name}${environment.version ? ` ${environment.version}` : ''}`
              : 'console'}
          </p>
        </div>
      </div>
      <div class="choices wrap">
        {state.tasks.value.length > 0 && (
          <div class="field row">
            <label for="task">Task</label>
            <select
              id="task"
              value={state.task.value}
              title={task?.description}
              onChange={(event) => state.chooseTask(event.currentTarget.value)}
            >
              {state.tasks.value.map(({ id, name, difficulty }) => (
                <option key={id} value={String(id)}>
                  {name}
                  {difficulty ? ` · ${difficulty}` : ''}
                </option>
              ))}
            </select>
          </div>
        )}
        <div class="field seed row">
          <label for="seed" data-tip="The same seed brings the same requests, to the millisecond">
            Seed
          </label>
          <input
            id="seed"
            type="number"
            inputMode="numeric"
            min={0}
            max={LARGEST_SEED}
            step={1}
            value={state.seed.value}
            onChange={(event) => {
              if (event.currentTarget.value !== '' && event.currentTarget.validity.valid)
                state.chooseSeed(event.currentTarget.valueAsNumber);
              else event.currentTarget.value = String(state.seed.value);
            }}
          />
        </div>
        <Scenario />
      </div>
      <Transport />
      <nav class="links row" aria-label="More">
        {isOurs && (
          <a class="button quiet" href="../plan" title="Which GPUs, and how many, for your traffic">
            Plan
          </a>
        )}
        <PanelButton panel="history" icon="history" />
        <PanelButton panel="share" icon="share" />
        {state.abilities.value.leaderboard && <PanelButton panel="leaderboard" icon="cup" />}
        <PanelButton panel="developers" icon="code" />
        <PanelButton panel="readme" icon="book" />
        <PanelButton panel="help" icon="help" />
        <ThemeButton />
      </nav>
    </header>
  );
}

/** Opens the options of the episode, where the environment offers some. */
function Scenario(): JSX.Element {
  const state = useConsole();
  const chosen = Object.keys(state.options.value).length;
  return (
    <Disclosure
      look="options-menu"
      summary={
        <summary class="button quiet">
          <Icon name="options" />
          <span>Scenario{chosen > 0 && ` (${chosen})`}</span>
        </summary>
      }
    >
      <LazyOptionsMenu />
    </Disclosure>
  );
}

function PanelButton({ panel, icon }: { panel: PanelName; icon: IconName }): JSX.Element {
  return (
    <Button
      look="quiet square"
      text={<Icon name={icon} />}
      title={PANELS[panel]}
      aria-label={PANELS[panel]}
      aria-haspopup="dialog"
      onClick={() => {
        openPanel.value = panel;
      }}
    />
  );
}
