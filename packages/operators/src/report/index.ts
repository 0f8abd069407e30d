export { alignedRows, snakeCase, terminalBars } from './format.ts';
