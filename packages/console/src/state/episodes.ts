import { batch } from '@preact/signals';
import { fetchPart } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import { readAbilities } from '../api/server-abilities.ts';
import type { EpisodeFile, Fields } from '../api/wire.ts';
import { startValues } from '../knobs/knob-values.ts';
import { type Choices, namedOptions, pickDrivers, pickTask } from './choices.ts';
import { type PageSignals, watchEpisode } from './page-signals.ts';
import type { Player } from './player.ts';
import type { Problems } from './problems.ts';
import { BY_HAND, RECORDED, Run } from './run.ts';

/** Puts episodes on the page: the one chosen, or one from a file. */
export interface Episodes {
  /** `ConsoleState.connect`, `openFile` and `resetOptions`. */
  connect(choices: Choices, autoplay: boolean): Promise<void>;
  openFile(file: EpisodeFile, thenPlay: boolean, beside?: readonly EpisodeFile[]): Promise<void>;
  resetOptions(): Fields;
  /** Starts the chosen episode anew on every run. */
  begin(thenPlay: boolean): Promise<void>;
  /** Values of the knobs at the start of the chosen task. */
  startingKnobs(): Fields;
}

export function createEpisodes(
  client: Client,
  page: PageSignals,
  { report, showProblem }: Problems,
  { play, settled, score }: Player,
): Episodes {
  const { task, chosenTask, seed, options, opened, runs, run, position } = page;
  let resetting: Promise<unknown> | undefined;

  const resetOptions = (): Fields => ({
    ...(chosenTask.value && { task_id: chosenTask.value.id }),
    seed: seed.value,
    ...options.value,
  });
  const startingKnobs = (): Fields => startValues(page.knobs.value, chosenTask.value?.default_action);

  /** Forgets the episode on the page. Answers whether its caller is still the one whose episode is awaited. */
  async function clear(): Promise<() => boolean> {
    page.episode.value++;
    const isCurrent = watchEpisode(page);
    batch(() => {
      page.playing.value = false;
      page.problem.value = undefined;
      position.value = null;
      page.pointedAt.value = null;
      page.zoomed.value = null;
      opened.value = undefined;
    });
    // A step still under way would otherwise play into the new episode of the same session.
    await settled();
    // Two resets of one session on their way at once could reach the server in either order.
    await resetting?.catch(() => {});
    return isCurrent;
  }

  async function begin(thenPlay: boolean): Promise<void> {
    const isCurrent = await clear();
    if (!isCurrent()) return;
    for (const one of runs.value)
      if (one.driver.value === RECORDED) one.drive(pickDrivers(page.policies.value, [])[0]);
    try {
      resetting = Promise.all(runs.value.map((one) => one.begin(resetOptions(), startingKnobs())));
      await resetting;
      if (isCurrent() && thenPlay) play();
    } catch (error) {
      if (isCurrent()) report(error, 'Try again', () => void begin(thenPlay));
    }
  }

  async function connect(choices: Choices, autoplay: boolean): Promise<void> {
    page.problem.value = undefined;
    let faults: string[] = [];
    try {
      faults = await readServer(client, page, choices);
    } catch (error) {
      report(error, 'Connect again', () => void connect(choices, autoplay));
      return;
    }
    await begin(autoplay && faults.length === 0 && run.value.driver.value !== BY_HAND);
    if (faults.length > 0 && !page.problem.value)
      showProblem(
        `The address asks for what this page cannot play. ${faults.join(' ')} Defaults are shown instead.`,
      );
  }

  async function openFile(
    file: EpisodeFile,
    thenPlay: boolean,
    beside: readonly EpisodeFile[] = [],
  ): Promise<void> {
    const isCurrent = await clear();
    if (!isCurrent()) return;
    try {
      const files = [file, ...beside];
      const answers = await Promise.all(files.map((one) => client.openEpisode(one, 0)));
      if (!isCurrent()) return;
      const [answer] = answers;
      const { task_id, seed: recordedSeed, ...rest } = file.reset;
      batch(() => {
        task.value = pickTask(page.tasks.value, task_id === undefined ? undefined : String(task_id));
        seed.value = typeof recordedSeed === 'number' ? recordedSeed : 0;
        options.value = namedOptions(page.abilities.value, rest);
        runs.value = files.map((one, place) => {
          const recorded = new Run(client, place, RECORDED);
          recorded.adopt(one, answers[place], startingKnobs());
          return recorded;
        });
        run.value = runs.value[0];
        position.value = beside.length > 0 ? null : 0;
        opened.value = {
          verified: answer.verified,
          recorded: file.environment?.version,
          played: answer.version,
          windows: answer.steps.length,
          run: run.value,
        };
      });
      await score();
      if (isCurrent() && thenPlay) play();
    } catch (error) {
      if (isCurrent()) report(error, 'Start an episode instead', () => void begin(false));
    }
  }

  return { connect, openFile, resetOptions, begin, startingKnobs };
}

/** Fills the page with what a server offers and the choices that it has. Answers the faults of the others. @throws ApiError */
async function readServer(client: Client, page: PageSignals, choices: Choices): Promise<string[]> {
  const [info, schemas, tasks, policies, description, checks] = await Promise.all([
    client.metadata(),
    client.schema(),
    client.tasks(),
    client.policies(),
    client.description(),
    asksForSomething(choices) ? fetchPart(import('../later/check-choices.ts')) : undefined,
  ]);
  const abilities = readAbilities(description);
  batch(() => {
    page.environment.value = info;
    page.schemas.value = schemas;
    page.tasks.value = tasks;
    page.policies.value = policies;
    page.abilities.value = abilities;
    page.task.value = pickTask(tasks, choices.task);
    page.seed.value = choices.seed ?? page.seed.value;
    page.options.value = checks?.pickOptions(abilities, choices.options) ?? {};
    const drivers = pickDrivers(policies, choices.policies);
    page.runs.value = drivers.map((name, place) => new Run(client, place, name));
    page.run.value = page.runs.value[0];
  });
  return checks?.faultsOf(choices, tasks, policies, abilities) ?? [];
}

function asksForSomething({ task, policies, options, faults = [] }: Choices): boolean {
  return task !== undefined || policies.length + faults.length + Object.keys(options).length > 0;
}
