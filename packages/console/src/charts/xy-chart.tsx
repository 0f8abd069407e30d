import { useSignal } from '@preact/signals';
import { CHART_WIDTH, type Chart, chartInPage } from '@servegym/operators/report';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** A chart as wide as what is around it. */
export function XYChartBox({ chart }: { chart: Chart }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(CHART_WIDTH);
  useEffect(() => {
    const sizes = new ResizeObserver(([entry]) => {
      width.value = Math.max(280, entry.contentRect.width);
    });
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, [width]);
  const __html = chartInPage(chart, width.value);
  // biome-ignore lint/security/noDangerouslySetInnerHtml: texts in it are escaped
  return <div class="xy-box" ref={box} dangerouslySetInnerHTML={{ __html }} />;
}
