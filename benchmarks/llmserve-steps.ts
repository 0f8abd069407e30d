// llmserve windows per second of wall time in process, on one core, with the requests they simulate, and the time of
// a snapshot and a restore in mid-episode. Requests are drawn before the clock starts; observations are read.
import { parseArgs } from 'node:util';
import { llmserve, type ServeAction, ServeEpisode } from '@servegym/environments';

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '40' },
    json: { type: 'boolean', default: false },
  },
});

const EPISODES = Number(values.episodes);
const actions: Record<string, Partial<ServeAction>> = {
  default: {},
  'cap 96': { batch_cap: 96 },
  'cap 96, depth 2': { batch_cap: 96, speculation_depth: 2 },
};

const rows = [];
for (const taskId of llmserve.tasks.shippedIds) {
  const task = llmserve.tasks.shipped[taskId];
  const drawn = Array.from({ length: 4 }, (_, seed) => llmserve.drawRequests(task, seed));
  for (const [name, change] of Object.entries(actions)) {
    const action = { ...task.defaultAction, ...change };
    const play = (episodes: number) => {
      let windows = 0;
      let requests = 0;
      for (let i = 0; i < episodes; i++) {
        const episode = new ServeEpisode(task, i % 4, { requests: drawn[i % 4] });
        while (!episode.done) {
          episode.step(action);
          episode.observation();
          windows++;
        }
        requests += episode.totals.requestsServed;
      }
      return { windows, requests };
    };
    play(EPISODES / 4);
    const started = performance.now();
    const { windows, requests } = play(EPISODES);
    const seconds = (performance.now() - started) / 1000;
    rows.push({
      task: taskId,
      action: name,
      windows_per_s: Math.round(windows / seconds),
      requests_per_s: Math.round(requests / seconds),
      snapshot_restore_us: Number(snapshotMicroseconds(taskId, action).toFixed(1)),
    });
  }
}
if (values.json) console.log(JSON.stringify(rows));
else console.table(rows);

function snapshotMicroseconds(
  taskId: (typeof llmserve.tasks.shippedIds)[number],
  action: ServeAction,
): number {
  const task = llmserve.tasks.shipped[taskId];
  const episode = new ServeEpisode(task, 1);
  for (let window = 0; window < task.windows / 2; window++) episode.step(action);
  const rounds = 2000;
  for (let i = 0; i < rounds; i++) episode.restore(episode.snapshot());
  const started = performance.now();
  for (let i = 0; i < rounds; i++) episode.restore(episode.snapshot());
  return ((performance.now() - started) / rounds) * 1000;
}
