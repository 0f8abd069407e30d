import { shellWords } from '../deployment/launch.ts';
import type { FleetPlan, PlanPool } from '../plan/plan-result.ts';
import { linesIf } from './format.ts';

/** Image of vLLM whose schedules the simulator has. */
const IMAGE = 'vllm/vllm-openai:v0.32.0';

/** A Deployment for each pool of a plan, which start its engines with vLLM, and a Service. */
export function kubernetesManifest({ pools, router, commands }: FleetPlan): string {
  const { line } = commands.find(({ engine }) => engine === 'vLLM')!;
  const app = pools[0].profile.model.name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const isDivided = pools[0].role !== 'all';
  // What a Service does not do: it spreads connections at random.
  const notes = [
    ...linesIf(isDivided, 'Before the pods, a proxy sends prompts to prefill and the rest to decode.'),
    ...linesIf(
      router === 'prefix_aware',
      'Before the pods, a router that knows prefixes: --routing-logic prefixaware of the production stack, or llm-d.',
    ),
  ];
  const deployments = pools.map((pool) => deployment(pool, app, shellWords(line).slice(2)));
  return [...deployments, service(app, isDivided, notes)].join('---\n');
}

function deployment({ engines, profile, role }: PlanPool, app: string, args: readonly string[]): string {
  const name = role === 'all' ? app : `${app}-${role}`;
  const labels = role === 'all' ? `{ app: ${app} }` : `{ app: ${app}, role: ${role} }`;
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: ${engines}
  selector:
    matchLabels: ${labels}
  template:
    metadata:
      labels: ${labels}
    spec:
      containers:
        - name: vllm
          image: ${IMAGE}
          args:
${args.map((each) => `            - ${JSON.stringify(each)}`).join('\n')}
          ports:
            - containerPort: 8000
          readinessProbe:
            httpGet: { path: /health, port: 8000 }
          resources:
            limits:
              nvidia.com/gpu: ${profile.gpu.count}
`;
}

function service(app: string, isDivided: boolean, notes: readonly string[]): string {
  return `${notes.map((note) => `# ${note}\n`).join('')}apiVersion: v1
kind: Service
metadata:
  name: ${app}
spec:
  selector: { app: ${app}${isDivided ? ', role: prefill' : ''} }
  ports:
    - port: 80
      targetPort: 8000
`;
}
