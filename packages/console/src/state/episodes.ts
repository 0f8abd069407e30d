import { batch } from '@preact/signals';
import { readAbilities } from '../api/action-schema.ts';
import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields } from '../api/wire.ts';
import { startValues } from '../knobs/knob-values.ts';
import { type Choices, faultsOf, pickDrivers, pickOptions, pickTask } from './choices.ts';
import { type PageSignals, watchEpisode } from './page-signals.ts';
import type { Player } from './player.ts';
import type { Problems } from './reconnection.ts';
import { BY_HAND, RECORDED, Run } from './run.ts';

export type Episodes = ReturnType<typeof createEpisodes>;

/** Puts episodes on the page: the one chosen, or one from a file. */
export function createEpisodes(
  client: Client,
  page: PageSignals,
  { report, showProblem }: Problems,
  { play, settled, score }: Player,
) {
  const { chosenTask, seed, options, opened, runs, run, position } = page;
  let resetting: Promise<unknown> | undefined;

  /** The options that the next reset carries. */
  const resetOptions = (): Fields => ({
    ...(chosenTask.value && { task_id: chosenTask.value.id }),
    seed: seed.value,
    ...options.value,
  });
  /** Values of the knobs at the start of the chosen task. */
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

  /** Starts the chosen episode anew on every run. */
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

  /** Shows an episode from its file, in place of the runs, at its start. Throws nothing: what is wrong becomes the problem. */
  async function openFile(file: EpisodeFile, thenPlay: boolean): Promise<void> {
    const isCurrent = await clear();
    if (!isCurrent()) return;
    try {
      const answer = await client.openEpisode(file, 0);
      if (!isCurrent()) return;
      const { verified, version, steps } = answer;
      batch(() => {
        takeChoices(page, file);
        const recorded = new Run(client, 0, RECORDED);
        recorded.adopt(file, answer, startingKnobs());
        runs.value = [recorded];
        run.value = recorded;
        position.value = 0;
        opened.value = {
          verified,
          recorded: file.environment?.version,
          played: version,
          windows: steps.length,
          run: recorded,
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

/** Chooses the task, the seed and the options of a file. */
function takeChoices({ task, tasks, seed, options, abilities }: PageSignals, { reset }: EpisodeFile): void {
  const { task_id, seed: recordedSeed, ...rest } = reset;
  task.value = pickTask(tasks.value, task_id === undefined ? undefined : String(task_id));
  seed.value = typeof recordedSeed === 'number' ? recordedSeed : 0;
  options.value = pickOptions(abilities.value, rest);
}

/** Fills the page with what a server offers and the choices that it has. Answers the faults of the others. @throws ApiError */
async function readServer(client: Client, page: PageSignals, choices: Choices): Promise<string[]> {
  const [info, schemas, tasks, policies, description] = await Promise.all([
    client.metadata(),
    client.schema(),
    client.tasks(),
    client.policies(),
    client.description(),
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
    page.options.value = pickOptions(abilities, choices.options);
    const drivers = pickDrivers(policies, choices.policies);
    page.runs.value = drivers.map((name, place) => new Run(client, place, name));
    page.run.value = page.runs.value[0];
  });
  return faultsOf(choices, tasks, policies, abilities);
}
