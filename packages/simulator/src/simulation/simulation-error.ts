/** A configuration that cannot be simulated: the profile lacks something, or nothing is left for KV. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError';
  readonly isInputError = true;
  readonly code = 'SIMULATION_OPTION';
}
