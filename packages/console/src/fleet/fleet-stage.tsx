import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { Charts } from '../components/chart-panel.tsx';
import { Figure, tip } from '../components/figure.tsx';
import { amount, count, dollars, latencyText, percent, words } from '../components/format.ts';
import { addStyles } from '../components/lazy.tsx';
import { ClassMeter, Observed, Station } from '../components/stage.tsx';
import { useConsole } from '../state/console-state.ts';
import { observed } from '../state/frame.ts';
import styles from '../styles/fleet.css?inline';
import { FLEET_CHARTS, FURTHER_FLEET_CHARTS } from './fleet-charts.ts';
import {
  arrivalsOf,
  CAPACITY_DEFINITION,
  capacityOf,
  fleetReport,
  type ReplicaReport,
  WASTED_DEFINITION,
  wastedUsdPerHour,
} from './fleet-report.ts';

addStyles(styles);

const seconds = (value: number) => (value === 0 ? '0' : latencyText(1000 * value));

/** The fleet at a glance: demand, the gateway's queue, the replicas, dollars and objectives by class. */
export function FleetStage(): JSX.Element {
  return (
    <section class="stage fleet-stage" aria-label="The fleet now">
      <Station title="Arrive" size="wide">
        <Arrivals />
      </Station>
      <Station title="Gateway">
        <Observed large label="Waiting" field="num_requests_waiting" format={count} />
        <div class="side-figures level">
          <Observed label="Queue" field="queue_seconds" format={seconds} />
          <Refused />
        </div>
      </Station>
      <Station title="Replicas" size="widest">
        <ReplicaCounts />
        <ReplicaCards />
      </Station>
      <Station title="Dollars an hour">
        <Net />
        <div class="side-figures level">
          <Observed label="Earned" field="revenue_usd_per_hour" format={dollars} />
          <Observed label="Bill" field="usd_per_hour" format={dollars} />
          <Wasted />
        </div>
      </Station>
      <Station title="In time" size="wide">
        <Objectives />
      </Station>
    </section>
  );
}

export function FleetCharts({ further }: { further?: boolean }): JSX.Element {
  return <Charts specs={further ? FURTHER_FLEET_CHARTS : FLEET_CHARTS} />;
}

function useReport() {
  const state = useConsole();
  return useComputed(() => state.shown.value && fleetReport(state.shown.value.metadata));
}

function Arrivals(): JSX.Element {
  const state = useConsole();
  const report = useReport();
  const rates = (report.value?.classes ?? []).map(({ name }) => ({
    name,
    rate: arrivalsOf(state.shown.value?.observation ?? {}, name),
  }));
  const total = rates.reduce((sum, { rate }) => sum + rate, 0);
  return (
    <>
      <Figure
        large
        label="Requests"
        definition="Requests that arrived, a second"
        figure={amount(total)}
        unit="/s"
      />
      <ul class="classes">
        {rates.map(({ name, rate }, index) => (
          <ClassMeter
            key={name}
            name={name}
            index={index}
            share={total > 0 ? rate / total : 0}
            text={amount(rate)}
          />
        ))}
      </ul>
    </>
  );
}

function Refused(): JSX.Element {
  const report = useReport();
  const refused = (report.value?.classes ?? []).reduce((sum, each) => sum + each.refused, 0);
  return (
    <Figure label="Refused" definition="Requests of the window answered with 429" figure={count(refused)} />
  );
}

function ReplicaCounts(): JSX.Element {
  const state = useConsole();
  const frame = state.shown.value;
  const capacity = frame && capacityOf(frame);
  return (
    <div class="side-figures">
      {capacity !== undefined && (
        <Figure
          label="Capacity"
          definition={CAPACITY_DEFINITION}
          figure={capacity === null ? '–' : amount(capacity)}
          unit="/s"
        />
      )}
      <Observed label="Ready" field="replicas_ready" format={count} />
      <Observed label="Starting" field="replicas_starting" format={count} />
      <Observed label="Draining" field="replicas_draining" format={count} />
    </div>
  );
}

/** A card for each replica that is billed: what it is sent and runs, and how full its KV pool is. */
function ReplicaCards(): JSX.Element {
  const { value: report } = useReport();
  const replicas = report?.replicas ?? [];
  const busiest = Math.max(1, ...replicas.map(({ running, waiting }) => running + waiting));
  const mostRouted = Math.max(1, ...replicas.map(({ routed = 0 }) => routed));
  return (
    <div class="replica-view">
      <ul class="replicas" aria-label="Replicas">
        {replicas.map((replica) => (
          <ReplicaCard key={replica.id} replica={replica} busiest={busiest} mostRouted={mostRouted} />
        ))}
        {replicas.length === 0 && <li class="fine">None is asked for.</li>}
      </ul>
      <ul class="replica-key fine" aria-hidden="true">
        {METERS.map(({ name, label }) => (
          <li key={name} class={name}>
            {label}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Bars of a card, by their class of style. */
const METERS = [
  { name: 'routed', label: 'sent by the router' },
  { name: 'running', label: 'running' },
  { name: 'waiting', label: 'waiting' },
  { name: 'kv', label: 'KV in use' },
] as const;

const ROLES: Readonly<Record<string, string>> = { prefill: 'reads', decode: 'writes' };

interface ReplicaCardProps {
  readonly replica: ReplicaReport;
  /** Most requests in flight on a replica. */
  readonly busiest: number;
  /** Most requests sent to a replica in the window. */
  readonly mostRouted: number;
}

function ReplicaCard({ replica, busiest, mostRouted }: ReplicaCardProps): JSX.Element {
  const {
    id,
    state,
    role,
    readyInS,
    routed,
    running,
    waiting,
    kvUse,
    hasFailed,
    prefixCacheHitRate: prefixHits,
  } = replica;
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
      <span class="replica-name">
        {id + 1}
        {hasFailed ? (
          <span class="role"> failed</span>
        ) : (
          ROLES[role] && <span class="role"> {ROLES[role]}</span>
        )}
      </span>
      <span class="replica-load">
        {state === 'starting' ? `${count(Math.ceil(readyInS))}\u202fs` : count(running + waiting)}
      </span>
      {routed !== undefined && (
        <span class="meter routed">
          <span style={{ transform: `scaleX(${routed / mostRouted})` }} />
        </span>
      )}
      <span class="meter load">
        <span class="waiting" style={{ transform: `scaleX(${(running + waiting) / busiest})` }} />
        <span class="running" style={{ transform: `scaleX(${running / busiest})` }} />
      </span>
      <span class="meter kv">
        <span style={{ transform: `scaleX(${kvUse})` }} />
      </span>
    </li>
  );
}

function Net(): JSX.Element {
  const state = useConsole();
  const frame = state.shown.value;
  const net =
    frame && (observed(frame, 'revenue_usd_per_hour') ?? 0) - (observed(frame, 'usd_per_hour') ?? 0);
  const text = net === undefined ? '–' : dollars(net);
  return (
    <Figure
      large
      label="Net"
      definition="Price of the tokens inside their objectives, less the bill"
      figure={text}
    />
  );
}

function Wasted(): JSX.Element {
  const state = useConsole();
  const { value: report } = useReport();
  const wasted = state.shown.value && report && wastedUsdPerHour(state.shown.value, report);
  return <Figure label="Wasted" definition={WASTED_DEFINITION} figure={dollars(wasted ?? 0)} />;
}

/** Share of each class that met its objectives. */
function Objectives(): JSX.Element {
  const { value: report } = useReport();
  return (
    <ul class="classes">
      {(report?.classes ?? []).map(({ name, completed, refused, attained, inFlight, ttftP99Ms }, index) => {
        const judged = completed + refused;
        const start = ttftP99Ms ? `, slowest start ${latencyText(ttftP99Ms)}` : '';
        return (
          <ClassMeter
            key={name}
            name={name}
            index={index}
            share={judged === 0 ? 0 : attained / judged}
            text={judged === 0 ? '–' : percent(attained / judged)}
            hint={`${words(name)}: ${count(inFlight)} in the fleet, ${count(completed)} answered, ${count(refused)} refused${start}`}
          />
        );
      })}
    </ul>
  );
}
