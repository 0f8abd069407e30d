import { type GainFigures, gainFigures } from '@servegym/agents';
import type { SeasonResults } from '@servegym/openenv';
import { interquartileMean } from '@servegym/simulator/statistics';
import { GAIN_LEGEND, gainColumns, gainsJson } from '../evaluate/evaluation-report.ts';
import { table } from '../output/print-result.ts';

type Submission = SeasonResults['submissions'][number];
type Episodes = Submission['episodes'];

/** Figures of a submission over some episodes. */
interface Standing {
  readonly gains: GainFigures | null;
  readonly score: number;
  /** Episodes that were played to their end. */
  readonly finished: number;
}

/** The ranking of a season: by the gain of the mean return over all tasks, or by the mean score without anchors. */
export function seasonRanking({ season, submissions }: SeasonResults) {
  const standings = submissions.map(({ number, name, episodes }) => ({
    ...{ number, name, episodes: episodes.length },
    ...standingOf(season.task_ids.map((taskId) => ofTask(episodes, taskId))),
    tasks: season.task_ids.map((taskId) => ({ taskId, ...standingOf([ofTask(episodes, taskId)]) })),
  }));
  const figure = ({ gains, score }: Standing) => gains?.gain.mean ?? score;
  return standings
    .sort((a, b) => figure(b) - figure(a))
    .map((standing) => ({
      rank: 1 + standings.filter((other) => figure(other) > figure(standing)).length,
      ...standing,
    }));
}

type Ranking = ReturnType<typeof seasonRanking>;

/** The ranking as `season close` and `season verify` print it. */
export const rankingForm = {
  json: (ranking: Ranking) =>
    ranking.map(({ rank, name, number, episodes, finished, tasks, ...overall }) => ({
      ...{ rank, name, submission: number, episodes, finished },
      ...figuresJson(overall),
      tasks: Object.fromEntries(tasks.map((task) => [task.taskId, figuresJson(task)])),
    })),
  text: (ranking: Ranking) =>
    [
      ...table(ranking, [
        ['rank', ({ rank }) => String(rank)],
        ['submission', ({ name }) => name],
        ...gainColumns<Standing>(({ gains }) => gains),
        ['score', ({ score }) => score.toFixed(3)],
        ['finished', ({ finished, episodes }) => `${finished} of ${episodes}`],
      ]),
      '',
      GAIN_LEGEND,
      'score: interquartile mean. Episodes that were left, or never opened, count as they ended.',
    ].join('\n'),
};

function ofTask(episodes: Episodes, taskId: string | number): Episodes {
  return episodes.filter((episode) => episode.task_id === taskId);
}

function standingOf(tasks: readonly Episodes[]): Standing {
  const all = tasks.flat();
  const returns = tasks.map((episodes) =>
    episodes.flatMap(({ anchors, return: total }) => {
      if (anchors === null) return [];
      const { default: standard, clairvoyant } = anchors;
      const by = { default: standard.return, clairvoyant: clairvoyant.return, estimated: false };
      return [{ return: total, anchors: by }];
    }),
  );
  const isAnchored = returns.flat().length === all.length;
  return {
    gains: isAnchored ? gainFigures(returns) : null,
    score: interquartileMean(all.map(({ score }) => score)),
    finished: all.filter(({ done }) => done).length,
  };
}

function figuresJson({ gains, score }: Pick<Standing, 'gains' | 'score'>) {
  return { ...gainsJson(gains), score };
}
