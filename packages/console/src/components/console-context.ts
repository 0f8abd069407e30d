import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ConsoleState } from '../state/console-state.ts';

export const ConsoleContext = createContext<ConsoleState | undefined>(undefined);

export function useConsole(): ConsoleState {
  const state = useContext(ConsoleContext);
  if (!state) throw new Error('Expected a ConsoleContext around this component');
  return state;
}
