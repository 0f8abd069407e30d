export { snakeCase } from './snake-case.ts';
export { alignedRows, terminalBars } from './terminal.ts';
