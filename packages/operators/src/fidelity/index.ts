export { assessFidelity, FIDELITY_FILES, FIDELITY_JOB_KINDS } from './assess-fidelity.ts';
export { assessLeague, type LeagueOptions } from './assess-league.ts';
export type { Fidelity, LeagueRow } from './fidelity.ts';
export { fidelityReport } from './fidelity-report.ts';
export { isDisturbed } from './league.ts';
export { leagueReport } from './league-report.ts';
export { findReferenceFiles, REFERENCE_DATA, type ReferenceFile, SERVED_LOADS } from './reference-data.ts';
