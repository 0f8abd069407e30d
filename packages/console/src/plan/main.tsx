import { render } from 'preact';
import { startTheme } from '../charts/palette.ts';
import { createPlanClient } from './plan-client.ts';
import { PlanPage } from './plan-page.tsx';

startTheme();
const client = createPlanClient(new URL('../', document.baseURI));
render(<PlanPage client={client} />, document.getElementById('plan')!);
