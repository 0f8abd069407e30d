import type { Pool } from 'pg';
import { BYTES_KEPT_S, PRESENCE_MS, type QueueRole, type QueueStore } from './queue-store.ts';

const TABLES = `
CREATE SCHEMA IF NOT EXISTS servegym;
CREATE TABLE IF NOT EXISTS servegym.shared_bytes (name text PRIMARY KEY, bytes bytea NOT NULL, used timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS servegym.present (role text, id text, version text NOT NULL, seen timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (role, id));
CREATE TABLE IF NOT EXISTS servegym.cancelled_jobs (id text PRIMARY KEY);
`;

/** Only one of those who come at the same time makes the tables. */
const TABLES_LOCK = 7_328_461;

/** The store of a queue on PostgreSQL, in a schema of its own. */
export class PostgresStore implements QueueStore {
  readonly #pool: Pool;

  private constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Makes the tables where they are missing, and drops bytes that nobody has asked for in a long time. */
  static async open(pool: Pool): Promise<PostgresStore> {
    const client = await pool.connect();
    try {
      await client.query('SELECT pg_advisory_lock($1)', [TABLES_LOCK]);
      await client.query(TABLES);
      await client.query('DELETE FROM servegym.shared_bytes WHERE used < now() - make_interval(secs => $1)', [
        BYTES_KEPT_S,
      ]);
      await client.query('SELECT pg_advisory_unlock($1)', [TABLES_LOCK]);
    } finally {
      client.release();
    }
    return new PostgresStore(pool);
  }

  async hasBytes(name: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'UPDATE servegym.shared_bytes SET used = now() WHERE name = $1',
      [name],
    );
    return rowCount === 1;
  }

  async putBytes(name: string, bytes: Uint8Array): Promise<void> {
    await this.#pool.query(
      'INSERT INTO servegym.shared_bytes (name, bytes) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET used = now()',
      [name, Buffer.from(bytes)],
    );
  }

  async getBytes(name: string): Promise<Uint8Array | null> {
    const { rows } = await this.#pool.query('SELECT bytes FROM servegym.shared_bytes WHERE name = $1', [
      name,
    ]);
    return rows[0]?.bytes ?? null;
  }

  async announce(role: QueueRole, id: string, version: string): Promise<void> {
    await this.#pool.query(
      'INSERT INTO servegym.present (role, id, version) VALUES ($1, $2, $3) ON CONFLICT (role, id) DO UPDATE SET seen = now()',
      [role, id, version],
    );
  }

  async leave(role: QueueRole, id: string): Promise<void> {
    await this.#pool.query('DELETE FROM servegym.present WHERE role = $1 AND id = $2', [role, id]);
  }

  async versions(role: QueueRole): Promise<string[]> {
    const { rows } = await this.#pool.query(
      'SELECT version FROM servegym.present WHERE role = $1 AND seen > now() - make_interval(secs => $2)',
      [role, PRESENCE_MS / 1000],
    );
    return rows.map(({ version }) => version);
  }

  async setCancelled(jobIds: readonly string[], cancelled: boolean): Promise<void> {
    await this.#pool.query(
      cancelled
        ? 'INSERT INTO servegym.cancelled_jobs SELECT unnest($1::text[]) ON CONFLICT DO NOTHING'
        : 'DELETE FROM servegym.cancelled_jobs WHERE id = ANY($1::text[])',
      [jobIds],
    );
  }

  async cancelledOf(jobIds: readonly string[]): Promise<string[]> {
    if (jobIds.length === 0) return [];
    const { rows } = await this.#pool.query(
      'SELECT id FROM servegym.cancelled_jobs WHERE id = ANY($1::text[])',
      [jobIds],
    );
    return rows.map(({ id }) => id);
  }
}
