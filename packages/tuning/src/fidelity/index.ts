export { assessFidelity, FIDELITY_FILES, FIDELITY_JOB_KINDS } from './assess-fidelity.ts';
export type { Fidelity } from './fidelity.ts';
export { fidelityReport } from './fidelity-report.ts';
export { findReferenceFiles, REFERENCE_DATA, type ReferenceFile, SERVED_LOADS } from './reference-data.ts';
