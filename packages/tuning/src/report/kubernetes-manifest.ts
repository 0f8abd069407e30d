import { shellWords } from '../launch/launch.ts';
import type { FleetPlan } from '../plan/plan-result.ts';

/** Image of vLLM whose schedules the simulator has. */
const IMAGE = 'vllm/vllm-openai:v0.32.0';

/** A Deployment and a Service that start the engines of a plan with vLLM. */
export function kubernetesManifest({ profile, engines, settings, commands }: FleetPlan): string {
  const { line } = commands.find(({ engine }) => engine === 'vLLM')!;
  const args = shellWords(line).slice(2);
  const name = profile.model.name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: ${engines}
  selector:
    matchLabels: { app: ${name} }
  template:
    metadata:
      labels: { app: ${name} }
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
              nvidia.com/gpu: ${profile.gpu.count}${settings.split ? ' # each engine of a pair' : ''}
---
apiVersion: v1
kind: Service
metadata:
  name: ${name}
spec:
  selector: { app: ${name} }
  ports:
    - port: 80
      targetPort: 8000
`;
}
