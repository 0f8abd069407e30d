import type { JSX } from 'preact';
import { useConsole } from '../components/console-context.ts';
import { CalmIcon, StrainedIcon } from '../components/controls.tsx';
import { count } from '../components/format.ts';
import { RECORDED } from '../state/run.ts';

/** Tells of an episode that came from a link, a file or the leaderboard whether it is the one that was recorded. */
export function OpenedNote(): JSX.Element | null {
  const { opened: file, runs } = useConsole();
  const opened = file.value;
  if (!opened) return null;
  const recordings = runs.value.filter(({ driver }) => driver.value === RECORDED).length;
  if (recordings > 1)
    return (
      <p class="opened calm" role="status">
        <CalmIcon />
        <span>{recordings} recorded runs side by side.</span>
      </p>
    );
  const { verified, recorded, played, windows, run } = opened;
  const isWhole = run.frames.value[windows]?.done === true;
  const isPlayedOn = run.played.value - 1 > windows;
  const isOther = recorded !== undefined && recorded !== played;
  return (
    <p class={verified === false ? 'opened strained' : 'opened calm'} role="status">
      {verified === false ? <StrainedIcon /> : <CalmIcon />}
      <span>
        <b>
          Recorded episode{run.author && ` by ${run.author}`}, {count(windows)} windows.
        </b>{' '}
        {verified === true && 'Replayed bit for bit: its digest is the recorded one.'}
        {verified === false &&
          `It did not come out as recorded: ${isOther ? `it was played on version ${recorded}, this is ${played}.` : 'its actions or its digest were changed.'}`}
        {verified === null && 'It carries no digest to check it against.'}
        {isPlayedOn && ` The windows after ${count(windows)} are not recorded: they are played on this page.`}
        {!isWhole &&
          !isPlayedOn &&
          ' The recording stops before the episode is over. Take over or choose a policy to play on.'}
      </span>
    </p>
  );
}
