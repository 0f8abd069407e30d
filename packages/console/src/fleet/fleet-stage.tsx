import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { Charts } from '../components/chart-panel.tsx';
import { tip } from '../components/figure.tsx';
import { amount, count, dollars, latencyText, percent, words } from '../components/format.ts';
import { type ClassShare, ClassShares, Meter, Observed, Station, startText } from '../components/stage.tsx';
import { ROLES } from '../components/stage-views.tsx';
import { withOtherCharts } from '../lazy/further-charts.ts';
import { useConsole } from '../state/console-state.ts';
import type { ClassTelemetry, Frame, ReplicaTelemetry } from '../state/frame.ts';
import { FLEET_CHARTS, FURTHER_FLEET_CHARTS } from './fleet-charts.ts';
import { arrivalsOf, CAPACITY, DEMAND, demandOf, NET, REFUSED, WASTED } from './fleet-report.ts';

const seconds = (value: number) => (value === 0 ? '0' : latencyText(1000 * value));

/** The fleet at a glance: demand, the gateway's queue, the replicas, dollars and objectives by class. */
export function FleetStage(): JSX.Element {
  return (
    <section class="panel stage fleet-stage" aria-label="The fleet now">
      <Station title="Arrive" size="wide">
        <Observed large {...DEMAND} unit="/s" />
        <ClassShares of={arriving} />
      </Station>
      <Station title="Gateway">
        <Observed large label="Waiting" field="num_requests_waiting" format={count} />
        <div class="side-figures level stack">
          <Observed label="Queue" field="queue_seconds" format={seconds} />
          <Observed {...REFUSED} />
        </div>
      </Station>
      <Station title="Replicas" size="widest">
        <div class="side-figures stack">
          <Observed optional {...CAPACITY} unit="/s" />
          <Observed label="Ready" field="replicas_ready" format={count} />
          <Observed label="Starting" field="replicas_starting" format={count} />
          <Observed label="Draining" field="replicas_draining" format={count} />
        </div>
        <ReplicaCards />
      </Station>
      <Station title="Dollars an hour">
        <Observed large {...NET} />
        <div class="side-figures level stack">
          <Observed label="Earned" field="revenue_usd_per_hour" format={dollars} />
          <Observed label="Bill" field="usd_per_hour" format={dollars} />
          <Observed {...WASTED} />
        </div>
      </Station>
      <Station title="In time" size="wide">
        <ClassShares of={inTime} />
      </Station>
    </section>
  );
}

export function FleetCharts({ further }: { further?: boolean }): JSX.Element {
  const state = useConsole();
  const { value: others } = useComputed(() => withOtherCharts(state, FLEET_CHARTS, FURTHER_FLEET_CHARTS));
  return <Charts specs={further ? others : FLEET_CHARTS} />;
}

/** The part of a class in the requests that arrive. */
function arriving({ name }: ClassTelemetry, frame: Frame): ClassShare {
  const [rate, total] = [arrivalsOf(frame.observation, name), demandOf(frame)];
  return { share: total > 0 ? rate / total : 0, text: amount(rate) };
}

/** The share of a class that met its objectives. */
function inTime({ name, inFlight, completed, refused, attained, ttftP99Ms }: ClassTelemetry): ClassShare {
  const judged = completed + refused;
  return {
    share: judged === 0 ? 0 : attained / judged,
    text: judged === 0 ? '–' : percent(attained / judged),
    hint: `${words(name)}: ${count(inFlight)} in the fleet, ${count(completed)} answered, ${count(refused)} refused${startText(ttftP99Ms)}`,
  };
}

/** A card for each replica that is billed: what it is sent and runs, and how full its KV pool is. */
function ReplicaCards(): JSX.Element {
  const replicas = useConsole().shown.value?.telemetry.replicas ?? [];
  const busiest = Math.max(1, ...replicas.map(({ running, waiting }) => running + waiting));
  const mostRouted = Math.max(1, ...replicas.map(({ routed = 0 }) => routed));
  return (
    <div class="replica-view stack between fill">
      <ul class="replicas" aria-label="Replicas">
        {replicas.map((replica) => (
          <ReplicaCard key={replica.id} replica={replica} busiest={busiest} mostRouted={mostRouted} />
        ))}
        {replicas.length === 0 && <li class="fine">None is asked for.</li>}
      </ul>
      <ul class="replica-key fine row wrap" aria-hidden="true">
        {Object.entries(METERS).map(([tone, label]) => (
          <li key={tone} style={{ '--mark': `var(--${tone})` }}>
            {label}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Bars of a card, by their colour. */
const METERS = { arrivals: 'sent by the router', running: 'running', waiting: 'waiting', kv: 'KV in use' };

interface ReplicaCardProps {
  readonly replica: ReplicaTelemetry;
  /** Most requests in flight on a replica. */
  readonly busiest: number;
  /** Most requests sent to a replica in the window. */
  readonly mostRouted: number;
}

function ReplicaCard({ replica, busiest, mostRouted }: ReplicaCardProps): JSX.Element {
  const { id, state, role, readyInS, routed, running, waiting, kvUse, hasFailed } = replica;
  const { prefixCacheHitRate: prefixHits } = replica;
  const said = [
    hasFailed && 'Failed in this window',
    state === 'starting'
      ? `Starts, ready in ${count(Math.ceil(readyInS))}\u202fs`
      : `${words(state)}: ${count(running)} running, ${count(waiting)} waiting, ${percent(kvUse)} of the KV blocks in use`,
    routed !== undefined && `${count(routed)} requests sent to it`,
    prefixHits !== undefined && `${percent(prefixHits)} of their prompts in its cache`,
  ]
    .filter(Boolean)
    .join(', ');
  return (
    <li
      class={`replica ${state} ${hasFailed ? 'failed' : ''}`}
      aria-label={`Replica ${id + 1}. ${said}`}
      {...tip(said)}
    >
      <span class="clipped muted nowrap">
        {id + 1}
        {hasFailed ? <span> failed</span> : ROLES[role] && <span> {ROLES[role]}</span>}
      </span>
      <span class="bold">
        {state === 'starting' ? `${count(Math.ceil(readyInS))}\u202fs` : count(running + waiting)}
      </span>
      {routed !== undefined && <Meter bars={{ arrivals: routed / mostRouted }} />}
      <Meter bars={{ waiting: (running + waiting) / busiest, running: running / busiest }} />
      <Meter bars={{ kv: kvUse }} />
    </li>
  );
}
