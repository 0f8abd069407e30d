/** The answer of `take`; empty when the session has actions and no reset. */
export type RedisSession = [
  environment: string,
  version: string,
  episode: string,
  reset: string,
  client: string,
  steps: string,
  digest: string,
  actions: string[],
];

/** Sessions of a client that one write looks at to make room. */
const SCANNED_SESSIONS = 50;
/** Bytes that a session and an entry take beside their texts, about. */
const SESSION_BYTES = 400;
const ENTRY_BYTES = 40;

const COMMON = `
  local owner, retention, id, client = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
  local clients, sessions = ARGV[5], ARGV[6]
  local session, actions = KEYS[1], KEYS[2]`;

/**
 * A client has its sessions, by the time of their first reset, and beside them the bytes of each and, as the field
 * `total`, of all. `resize` counts bytes more of a session; `room` deletes the client's oldest sessions that rest.
 */
const QUOTA = `
  local function resize(of, member, bytes)
    redis.call('HINCRBY', clients .. of .. ':bytes', 'total', bytes)
    redis.call('HINCRBY', clients .. of .. ':bytes', member, bytes)
    redis.call('PEXPIRE', clients .. of, retention)
    redis.call('PEXPIRE', clients .. of .. ':bytes', retention)
  end
  local function drop(of, member)
    local bytes = redis.call('HGET', clients .. of .. ':bytes', member)
    if bytes then redis.call('HINCRBY', clients .. of .. ':bytes', 'total', -bytes) end
    redis.call('HDEL', clients .. of .. ':bytes', member)
    redis.call('ZREM', clients .. of, member)
    redis.call('DEL', sessions .. member, sessions .. member .. ':actions')
  end
  local function room(of, bytes, most, rest)
    if of == '' then return true end
    local function fits() return tonumber(redis.call('HGET', clients .. of .. ':bytes', 'total') or 0) + bytes <= tonumber(most) end
    if fits() then return true end
    for _, member in ipairs(redis.call('ZRANGE', clients .. of, 0, ${SCANNED_SESSIONS - 1})) do
      if member ~= id and tonumber(retention) - redis.call('PTTL', sessions .. member) > tonumber(rest) then drop(of, member) end
      if fits() then return true end
    end
    return false
  end`;

/**
 * Each script checks the owner and acts in one go. A session is a hash `{owner, environment, version, client, episode,
 * reset, steps, digest}` and beside it a list of its actions.
 */
export const REDIS_SCRIPTS = {
  saveReset: `${COMMON}${QUOTA}
    local environment, version, episode, reset, digest = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
    local kept = redis.call('HMGET', session, 'owner', 'client')
    if kept[1] and kept[1] ~= owner then return 'taken' end
    client = kept[2] or client
    local bytes = ${SESSION_BYTES} + #reset
    if client ~= '' then bytes = bytes - tonumber(redis.call('HGET', clients .. client .. ':bytes', id) or 0) end
    if not room(client, bytes, ARGV[12], ARGV[13]) then return 'quota' end
    redis.call('DEL', session, actions)
    redis.call('HSET', session, 'owner', owner, 'environment', environment, 'version', version, 'client', client,
      'episode', episode, 'reset', reset, 'steps', 0, 'digest', digest)
    redis.call('PEXPIRE', session, retention)
    if client ~= '' then
      local time = redis.call('TIME')
      redis.call('ZADD', clients .. client, 'NX', string.format('%d%06d', time[1], time[2]), id)
      resize(client, id, bytes)
    end
    return 'saved'`,
  saveStep: `${COMMON}${QUOTA}
    local index, action, digest = tonumber(ARGV[7]), ARGV[8], ARGV[9]
    local kept = redis.call('HMGET', session, 'owner', 'client', 'steps')
    if not kept[1] then return 'deleted' end
    if kept[1] ~= owner then return 'taken' end
    if tonumber(kept[3]) ~= index or redis.call('LLEN', actions) ~= index then return 'gap' end
    local of = kept[2] or ''
    if not room(of, ${ENTRY_BYTES} + #action, ARGV[10], ARGV[11]) then return 'quota' end
    redis.call('HSET', session, 'steps', index + 1, 'digest', digest)
    redis.call('RPUSH', actions, action)
    redis.call('PEXPIRE', session, retention)
    redis.call('PEXPIRE', actions, retention)
    if of ~= '' then resize(of, id, ${ENTRY_BYTES} + #action) end
    return 'saved'`,
  take: `${COMMON}
    if redis.call('EXISTS', session) == 0 then
      if redis.call('EXISTS', actions) == 0 then return false end
      return {}
    end
    redis.call('HSET', session, 'owner', owner)
    redis.call('PEXPIRE', session, retention)
    redis.call('PEXPIRE', actions, retention)
    local kept = redis.call('HMGET', session, 'environment', 'version', 'episode', 'reset', 'client', 'steps', 'digest')
    for field = 1, 7 do kept[field] = kept[field] or '' end
    kept[8] = redis.call('LRANGE', actions, 0, -1)
    return kept`,
  remove: `${COMMON}${QUOTA}
    local kept = redis.call('HMGET', session, 'owner', 'client')
    if kept[1] ~= owner then return 0 end
    if kept[2] and kept[2] ~= '' then drop(kept[2], id) end
    return redis.call('DEL', session, actions)`,
} as const;

export type Script = keyof typeof REDIS_SCRIPTS;
