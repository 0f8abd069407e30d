import type { Knob } from '../api/action-schema.ts';
import type { Fields, Task } from '../api/wire.ts';
import type { Frame } from '../state/frame.ts';

/**
 * Whether a knob does nothing now: the task lists its `active_actions` without it, or the window's `action_mask` has
 * `false` for it.
 */
export function isMasked({ name }: Knob, task: Task | undefined, frame: Frame | undefined): boolean {
  const active = task?.active_actions;
  if (Array.isArray(active) && !active.includes(name)) return true;
  return maskOf(frame)[name] === false;
}

/** The values of a choice that the window's `action_mask` shuts out: it lists those that are allowed. */
export function maskedValues(
  { name }: Knob,
  values: readonly unknown[],
  frame: Frame | undefined,
): unknown[] {
  const allowed = maskOf(frame)[name];
  return Array.isArray(allowed) ? values.filter((value) => !allowed.includes(value)) : [];
}

function maskOf(frame: Frame | undefined): Fields {
  const mask = frame?.metadata.action_mask;
  return typeof mask === 'object' && mask !== null ? (mask as Fields) : {};
}
