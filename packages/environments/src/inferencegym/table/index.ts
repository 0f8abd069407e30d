export { encodeTable, TableBuilder, type TableRow } from './build-table.ts';
