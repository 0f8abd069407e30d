import { type GainFigures, gainFigures } from '@servegym/agents';
import type { SeasonResults } from '@servegym/openenv';
import { alignedRows } from '@servegym/operators/report';
import { interquartileMean } from '@servegym/simulator/statistics';
import { GAIN_HEADER, GAIN_LEGEND, gainCells, gainsJson } from '../evaluate/evaluation-report.ts';

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

/** The object that `season close --json` and `season verify --json` print. */
export function rankingJson(ranking: Ranking) {
  return ranking.map(({ rank, name, number, episodes, finished, tasks, ...overall }) => ({
    ...{ rank, name, submission: number, episodes, finished },
    ...figuresJson(overall),
    tasks: Object.fromEntries(tasks.map((task) => [task.taskId, figuresJson(task)])),
  }));
}

/** Text of `season close` and `season verify`. */
export function rankingTable(ranking: Ranking): string {
  const rows = ranking.map(({ rank, name, gains, score, finished, episodes }) => [
    ...[String(rank), name, ...gainCells(gains), score.toFixed(3), `${finished} of ${episodes}`],
  ]);
  return [
    ...alignedRows([['rank', 'submission', ...GAIN_HEADER, 'score', 'finished'], ...rows]),
    '',
    GAIN_LEGEND,
    'score: interquartile mean. Episodes that were left, or never opened, count as they ended.',
  ].join('\n');
}

function ofTask(episodes: Episodes, taskId: string | number): Episodes {
  return episodes.filter((episode) => episode.task_id === taskId);
}

function standingOf(tasks: readonly Episodes[]): Standing {
  const all = tasks.flat();
  const returns = tasks.map((episodes) =>
    episodes.flatMap(({ anchors, return: total }) =>
      anchors === null
        ? []
        : {
            return: total,
            anchors: {
              default: anchors.default.return,
              clairvoyant: anchors.clairvoyant.return,
              estimated: false,
            },
          },
    ),
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
