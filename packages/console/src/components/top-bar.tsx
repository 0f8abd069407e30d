import type { JSX } from 'preact';
import { isKnown, LARGEST_SEED } from '../state/choices.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel, PANELS, type PanelName } from '../state/page-signals.ts';
import { Button, Disclosure, Icon, PageHeader, Select } from './controls.tsx';
import { LazyOptionsMenu } from './lazy.tsx';
import { Transport } from './transport.tsx';

export function TopBar(): JSX.Element {
  const state = useConsole();
  const environment = state.environment.value;
  const task = state.chosenTask.value;
  return (
    <PageHeader
      title="ServeGym"
      subtitle={environment ? [environment.name, environment.version].filter(Boolean).join(' ') : 'console'}
      definition={environment?.description}
      links={<Links />}
    >
      <div class="choices row wrap">
        {state.tasks.value.length > 0 && (
          <div class="field row gap">
            <label for="task">Task</label>
            <Select
              id="task"
              value={state.task.value}
              title={task?.description}
              options={state.tasks.value.map(({ id, name, difficulty }) => ({
                value: String(id),
                text: difficulty ? `${name} · ${difficulty}` : name,
              }))}
              onChoose={state.chooseTask}
            />
          </div>
        )}
        <div class="field seed row gap">
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
    </PageHeader>
  );
}

function Links(): JSX.Element {
  const { environment } = useConsole();
  return (
    <>
      {isKnown(environment.value) && (
        <a class="button quiet" href="../plan" title="Which GPUs, and how many, for your traffic">
          Plan
        </a>
      )}
      {Object.entries(PANELS).map(([name, { title, icon }]) => (
        <Button
          key={name}
          look="quiet square"
          text={<Icon name={icon} label={title.split(' ')[0]} />}
          title={title}
          aria-label={title}
          aria-haspopup="dialog"
          onClick={() => {
            openPanel.value = name as PanelName;
          }}
        />
      ))}
    </>
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
