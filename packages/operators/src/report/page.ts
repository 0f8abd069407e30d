import { escaped } from './chart-svg.ts';
import { alignedRows } from './format.ts';
import type { ServingCommand } from './result.ts';

// A result in parts, as pages and texts show it. All of it is JSON: a page carries it.

/** A table, its cells as they are read. */
export interface Table {
  /** What it has, for those who do not see it. */
  readonly label: string;
  readonly names: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** What the columns and marks mean. */
  readonly notes?: readonly string[];
}

/** A column of a table: its name, and what a row has in it. */
export type Column<Row> = readonly [name: string, cell: (row: Row, index: number) => string];

export function tableOf<Row>(
  label: string,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  notes?: readonly string[],
): Table {
  return {
    label,
    names: columns.map(([name]) => name),
    rows: rows.map((row, i) => columns.map(([, cell]) => cell(row, i))),
    ...(notes !== undefined && { notes }),
  };
}

export function tableLines({ names, rows, notes = [] }: Table): string[] {
  return [...alignedRows([names, ...rows]), ...notes];
}

/** How the numbers of an axis are written: `amount` in three digits, `latency` of ms, `percent` of a share. */
export type Unit = 'plain' | 'amount' | 'count' | 'dollars' | 'latency' | 'percent';

type Look = 'first' | 'second' | 'third' | 'faint';

export interface ChartAxis {
  readonly title: string;
  readonly unit?: Unit;
  readonly logarithmic?: boolean;
  /** Default: what is drawn, from zero where the axis is not logarithmic. */
  readonly domain?: readonly [low: number, high: number];
  /** Default: round values. */
  readonly ticks?: readonly number[];
  /** Names of the values 0, 1, ..., from the top down, in the place of numbers. */
  readonly names?: readonly string[];
}

interface Line {
  readonly look: Look;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Bars are drawn as thick lines. */
  readonly thick?: boolean;
  readonly title?: string;
}

interface Dot {
  readonly x: number;
  readonly y: number;
  readonly look: Look;
  readonly radius: number;
  readonly hollow?: boolean;
  /** Shown when it is pointed at. */
  readonly title: string;
  readonly text?: string;
}

/** A chart of lines and dots. Later ones are drawn over earlier ones, and dots over lines. */
export interface Chart {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  readonly x: ChartAxis;
  readonly y: ChartAxis;
  readonly lines?: readonly Line[];
  readonly dots?: readonly Dot[];
  readonly legend?: readonly { readonly look: Look; readonly hollow?: boolean; readonly text: string }[];
  readonly height?: number;
}

/** A part of a page; what it has of these is shown in this order. */
export interface Section {
  readonly title?: string;
  /** The figures that matter most, with what each is. */
  readonly numbers?: readonly (readonly [value: string, name: string])[];
  readonly paragraphs?: readonly string[];
  readonly chart?: Chart;
  readonly table?: Table;
  readonly commands?: readonly ServingCommand[];
  readonly items?: readonly string[];
  /** Text to copy. */
  readonly code?: string;
  /** `half`: two stand side by side where there is room. `folded`: only its title is shown at first. */
  readonly look?: 'half' | 'folded' | 'heading';
}

/** The page that a command writes. */
export interface Page {
  readonly title: string;
  /** Text below the title. */
  readonly lead: string;
  readonly sections: readonly Section[];
}

/** A page as one HTML file that needs nothing else: the console's built page with the parts in it. */
export function pageHtml(built: string, page: Page): string {
  // A `<` in JSON stands in a string, and must not end the element.
  const json = JSON.stringify(page).replaceAll('<', '\\u003c');
  return built.replace('ServeGym report', () => escaped(page.title)).replace('{"report":null}', () => json);
}
