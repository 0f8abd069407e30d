export { type ReadTables, readOperatorTables } from './read-operator-tables.ts';
