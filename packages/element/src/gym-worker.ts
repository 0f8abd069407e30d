import { fetchProfiles } from './catalog.ts';
import { Game, gameProfiles } from './game.ts';
import { type Action, type GameChoice, type GameWindow, movesOf } from './game-moves.ts';
import { turn } from './turn.ts';

/** What the worker is asked: to begin a game with some moves, or to play on. A later game takes the place of one before. */
export type GymRequest =
  | { readonly id: number; readonly choice: GameChoice; readonly moves: string }
  | { readonly id: number; readonly action: Action; readonly windows: number };

/** The game that was begun. */
export type OpenedGame = Pick<Game, 'players' | 'tasks' | 'knobs' | 'task'>;

/** What it answers: the game, windows as they are played, the scores at the end, or what is wrong. */
export type GymAnswer = { readonly id: number } & (
  | { readonly opened: OpenedGame }
  | { readonly windows: readonly GameWindow[]; readonly isLast: boolean }
  | { readonly scores: readonly number[] }
  | { readonly problem: string }
);

/** Least time between two messages, ms. */
const TELL_EACH_MS = 60;
let game: Game | undefined;
let latest = 0;

async function play(id: number, playing: Game, actions: Iterable<Action>) {
  const send = (answer: GymAnswer) => postMessage(answer);
  let windows: GameWindow[] = [];
  let toldAt = performance.now();
  for (const action of actions) {
    if (playing.done) break;
    windows.push(playing.play(action));
    if (performance.now() - toldAt < TELL_EACH_MS) continue;
    send({ id, windows, isLast: false });
    windows = [];
    await turn();
    if (id !== latest) return;
    toldAt = performance.now();
  }
  send({ id, windows, isLast: true });
  if (playing.done) send({ id, scores: await playing.scores() });
}

async function answer(request: GymRequest): Promise<void> {
  const { id } = request;
  if ('choice' in request) {
    const { choice, moves } = request;
    await fetchProfiles(gameProfiles(choice), 'own');
    if (id !== latest) return;
    game = new Game(choice);
    const { players, tasks, knobs, task } = game;
    postMessage({ id, opened: { players, tasks, knobs, task } } satisfies GymAnswer);
    await play(id, game, movesOf(moves, knobs, task));
  } else if (game !== undefined) await play(id, game, Array(request.windows).fill(request.action));
}

addEventListener('message', ({ data }: MessageEvent<GymRequest>) => {
  latest = data.id;
  answer(data).catch((error: Error) => {
    if (data.id === latest) postMessage({ id: data.id, problem: error.message } satisfies GymAnswer);
  });
});
