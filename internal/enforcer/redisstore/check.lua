-- Decides a batch of requests in one round trip.
--
-- ARGV   groups of requests of one shape, one after the other:
--          kind, checks a request, requests, then for each check of the shape
--          limit, window in seconds, window number, cost, 1 if it enforces
--          A kind over 9 is the kind less 10 without ":denied" keys, for a slot that
--          is on its way to another server, where a call can have one key only
--        or, for one request that is charged for one check, which enforces, no more
--        than limit, window, window number and cost
-- KEYS   for each request of each group, for each check: counter, its ":denied"
-- reply  integers: seconds, microseconds, counters whose expiry was repaired,
--        then one for each check of each request, in the order of KEYS:
--          n >= 0        not over, n admitted
--          -(n + 1)      over, n admitted
--          -2^55         stale: the window number is not the one of now
--          -2^55 - 8k    the request failed with kind k
--
-- A counter holds attempts, ":denied" what was denied of them, and
-- admitted = attempts - denied. As long as attempts <= limit nothing more needs
-- to be known. Costs come as text and go to Redis as they came, because Lua
-- would write large numbers as 1e+15.
local CHARGE, LOOK, REFUND, DEBIT, RECORD = 0, 1, 2, 3, 4
local MOST = 9007199254740992 -- 2^53: below it doubles count one by one
local STALE = -36028797018963968 -- -2^55, and every eighth below it

local time = redis.call('TIME')
local now = time[1] + 0

-- One request with one counter that is there and within its limit: nothing below is
-- needed, and not even making its functions. Otherwise first is the answer to
-- INCRBY. Adding 0 makes a number of a text without a call.
local args, first = ARGV, nil
if #args == 4 then
  local window, n = args[2] + 0, args[4] + 0
  local elapsed = now - window * args[3]
  if elapsed >= 0 and elapsed < window and n < MOST then
    first = redis.pcall('INCRBY', KEYS[1], args[4])
    if type(first) == 'number' and first <= args[1] + 0 and first ~= n then
      return {now, time[2] + 0, 0, first}
    end
  end
  args = {'0', '1', '1', args[1], args[2], args[3], args[4], '1'}
end

local reply = {now, tonumber(time[2]), 0}
local filled = 3
local readonly = false

local function failure(err)
  local text = type(err) == 'table' and err.err or tostring(err)
  local kind = 6
  if text:find('WRONGTYPE', 1, true) or text:find('not an integer', 1, true) or text:find('overflow', 1, true) then
    kind = 1
  elseif text:find('OOM', 1, true) then
    kind = 2
  elseif text:find('READONLY', 1, true) then
    kind, readonly = 3, true
  elseif text:find('NOPERM', 1, true) or text:find("can't run", 1, true) or text:find("can't access", 1, true) then
    kind = 4
  elseif text:find('LOADING', 1, true) or text:find('MASTERDOWN', 1, true)
    or text:find('NOREPLICAS', 1, true) or text:find('MISCONF', 1, true) then
    kind = 5
  end
  return STALE - 8 * kind
end

local function whole(n)
  return string.format('%.0f', n)
end

local function failed(answer)
  return type(answer) == 'table' and answer.err ~= nil
end

-- Reads a number under pcall; nil is 0.
local function read(key)
  local text = redis.pcall('GET', key)
  if failed(text) then
    return nil, failure(text)
  end
  if not text then
    return 0
  end
  local n = tonumber(text)
  if not n then
    return nil, failure({err = 'not an integer'})
  end
  return n
end

-- What was denied of so many attempts. A left-over or broken mark is never
-- believed beyond the attempts.
local function denied_of(c, attempts)
  if not c.denied then
    return 0
  end
  local text = redis.pcall('GET', c.denied)
  if failed(text) then
    return nil, failure(text)
  end
  local n = text and tonumber(text) or 0
  return math.max(0, math.min(n, attempts))
end

-- What a counter holds: attempts, and how many of them were denied.
local function state(c)
  local attempts, err = read(c.key)
  if err then
    return nil, nil, err
  end
  local denied
  denied, err = denied_of(c, attempts)
  return attempts, denied, err
end

-- Gives a counter an expiry if it has none.
local function repair(c, s)
  if redis.call('TTL', c.key) == -1 then
    redis.call('EXPIREAT', c.key, s.ends)
    reply[3] = reply[3] + 1
  end
end

-- Takes up a check whose cost is more than any limit: it is over, and not counted,
-- since numbers would no longer be exact.
local function beyond(c)
  local attempts, denied, err = state(c)
  if err then
    return err
  end
  c.admitted, c.over, c.saturated = attempts - denied, true, true
end

-- Adds the cost of a check to its counter; answer is that to INCRBY, where it was
-- done. Sets the expiry if the counter is new, and fills in c.admitted (before this
-- request) and c.over.
local function add(c, s, answer)
  if s.n >= MOST then
    return beyond(c)
  end
  local attempts = answer or redis.pcall('INCRBY', c.key, s.cost)
  if failed(attempts) then
    return failure(attempts)
  end
  c.added = true
  c.created = attempts == s.n
  if c.created then
    local set = redis.pcall('EXPIREAT', c.key, s.ends)
    if failed(set) then
      return failure(set)
    end
    set = c.denied and redis.pcall('DEL', c.denied)
    if failed(set) then
      return failure(set)
    end
  end
  if attempts <= s.limit then
    c.admitted, c.over = attempts - s.n, false
    return
  end
  repair(c, s)
  local before = attempts - s.n
  if attempts >= MOST then
    -- Too many to count one by one: leave the counter as it was.
    redis.call('DECRBY', c.key, s.cost)
    before = tonumber(redis.call('GET', c.key))
    c.saturated = true
  end
  local denied, err = denied_of(c, before)
  if err then
    return err
  end
  c.marked = denied
  c.admitted = before - denied
  c.over = c.admitted + s.n > s.limit
  if c.saturated and not c.over then
    -- Forget what was denied, so that what was admitted stays exact.
    redis.call('SET', c.key, whole(c.admitted + s.n))
    redis.call('EXPIREAT', c.key, s.ends)
    if c.denied then
      redis.call('DEL', c.denied)
    end
    c.marked, c.saturated = 0, false
  end
end

local function take_back(c, s)
  if not c.added or c.saturated then
    return
  end
  if c.created then
    redis.call('DEL', c.key)
  else
    redis.call('DECRBY', c.key, s.cost)
  end
end

-- Keeps a denied attempt and marks it; where it can't be marked it is not kept.
local function mark(c, s)
  if c.saturated then
    return
  elseif not c.denied then
    return take_back(c, s)
  end
  local marked = redis.pcall('INCRBY', c.denied, s.cost)
  if failed(marked) or marked ~= c.marked + s.n then
    redis.call('SET', c.denied, whole(c.marked + s.n))
    redis.call('EXPIREAT', c.denied, s.ends)
  elseif c.marked == 0 then
    redis.call('EXPIREAT', c.denied, s.ends)
  end
end

-- Both return a failure, after which nothing of the request is left. answer is that
-- to the first INCRBY of a request with one check.
local function charge(checks, shape, answer)
  local refused = false
  for i, c in ipairs(checks) do
    local s = shape[i]
    local err = add(c, s, answer)
    if err then
      for j = 1, i do
        take_back(checks[j], shape[j])
      end
      return err
    end
    refused = refused or (c.over and s.enforces)
  end
  for i, c in ipairs(checks) do
    if c.over then
      mark(c, shape[i])
    elseif refused then
      take_back(c, shape[i])
    else
      c.admitted = c.admitted + shape[i].n
    end
  end
end

local function debit(checks, shape)
  for i, c in ipairs(checks) do
    local s = shape[i]
    local err = add(c, s)
    if err then
      for j = 1, i do
        take_back(checks[j], shape[j])
      end
      return err
    end
    if not c.saturated then
      c.admitted = c.admitted + s.n
    end
    c.over = c.admitted > s.limit
  end
end

local function look(checks, shape)
  for i, c in ipairs(checks) do
    local s = shape[i]
    local attempts, denied, err = state(c)
    if err then
      return err
    end
    c.attempts, c.admitted = attempts, attempts - denied
    c.over = c.admitted + math.max(s.n, 1) > s.limit
  end
end

local function refund(checks, shape)
  local err = look(checks, shape)
  if err then
    return err
  end
  for i, c in ipairs(checks) do
    local back = math.min(shape[i].n, c.admitted)
    if back > 0 then
      local answer = redis.pcall('DECRBY', c.key, whole(back))
      if failed(answer) then
        return failure(answer)
      end
      c.admitted = c.admitted - back
    end
    c.over = false
  end
end

-- Counts attempts that were denied without asking.
local function record(checks, shape)
  local err = look(checks, shape)
  if err then
    return err
  end
  for i, c in ipairs(checks) do
    local s = shape[i]
    if c.denied and c.attempts > 0 and c.attempts < MOST - s.n then
      local answer = redis.pcall('INCRBY', c.key, s.cost)
      if failed(answer) then
        return failure(answer)
      end
      repair(c, s)
      c.marked = c.attempts - c.admitted
      mark(c, s)
    end
    c.over = false
  end
end

local actions = {[CHARGE] = charge, [LOOK] = look, [REFUND] = refund, [DEBIT] = debit, [RECORD] = record}

local a, k = 1, 1
while a <= #args do
  local kind, width, requests = tonumber(args[a]), tonumber(args[a + 1]), tonumber(args[a + 2])
  a = a + 3
  local bare = kind > 9
  if bare then
    kind = kind - 10
  end
  local keys = bare and 1 or 2
  local shape, stale = {}, false
  for i = 1, width do
    local window, number = tonumber(args[a + 1]), tonumber(args[a + 2])
    shape[i] = {
      limit = tonumber(args[a]),
      ends = whole((number + 1) * window),
      cost = args[a + 3],
      n = tonumber(args[a + 3]),
      enforces = args[a + 4] == '1',
    }
    stale = stale or math.floor(now / window) ~= number
    a = a + 5
  end
  local plain = kind == CHARGE and width == 1 and not stale and shape[1].n < MOST
  for _ = 1, requests do
    local answer
    if plain then
      -- The common case, a counter that is there and within its limit, needs no
      -- more than this.
      answer = first or redis.pcall('INCRBY', KEYS[k], shape[1].cost)
    end
    if plain and type(answer) == 'number' and answer <= shape[1].limit and answer ~= shape[1].n then
      filled, k = filled + 1, k + keys
      reply[filled] = answer
    else
      local checks = {}
      for i = 1, width do
        checks[i] = {key = KEYS[k], denied = not bare and KEYS[k + 1]}
        k = k + keys
      end
      local code = stale and STALE or actions[kind](checks, shape, answer)
      for _, c in ipairs(checks) do
        filled = filled + 1
        reply[filled] = code or (c.over and -(c.admitted + 1)) or c.admitted
      end
    end
  end
end
if readonly then
  -- Nothing was written: a server changes its role between scripts only. Said by
  -- this name, the client leaves the connection.
  return redis.error_reply("READONLY You can't write against a read only replica.")
end
return reply
