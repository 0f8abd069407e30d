export { TableBuilder, type TableRow } from './build-table.ts';
export { encodeTable } from './encode-table.ts';
