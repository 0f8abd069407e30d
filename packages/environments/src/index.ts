export {
  DEFAULT_ACTION,
  QUANTIZATION_TIERS,
  type QuantizationTier,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
  TASK_IDS,
  type TaskId,
} from './llmserve/schema.ts';
