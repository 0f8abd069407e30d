import type { JSX } from 'preact';
import { useConsole } from './console-context.ts';
import { FailingIcon } from './icons.tsx';

/** Says what went wrong and offers the way on. */
export function ProblemBanner(): JSX.Element | null {
  const problem = useConsole().problem.value;
  if (!problem) return null;
  return (
    <div class="problem" role="alert">
      <FailingIcon />
      <p>{problem.message}</p>
      <button type="button" class="button" onClick={problem.mend}>
        {problem.remedy}
      </button>
    </div>
  );
}
