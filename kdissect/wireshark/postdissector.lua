-- Shows what kdissect found, in the packets that it names: findings as expert information, and what is known of
-- each exchange as fields that can be filtered (kdissect.latency_ns > 100000000).
--
-- It reads comments of packets, as `kdissect read FILE -w OUT --comment findings --comment exchanges` and
-- the interfaces of `kdissect extcap` write them. It decodes nothing and opens no file.

local columns = {
--@COLUMNS@
}

local kdissect = Proto("kdissect", "kdissect")
local comments = Field.new("frame.comment")

local of_number = {int16 = true, int32 = true, int64 = true}

local fields = {
    finding = ProtoField.string("kdissect.finding", "finding", base.UNICODE, "The rule that found it"),
    severity = ProtoField.string("kdissect.finding.severity", "severity", base.UNICODE,
        "critical, warning, notice or info"),
    message = ProtoField.string("kdissect.finding.message", "message", base.UNICODE, "What was found"),
}
local by_name = {
    request_packet = ProtoField.framenum("kdissect.request_packet", "request_packet", base.NONE,
        frametype.REQUEST, 0, "The packet that completed the request"),
    response_packet = ProtoField.framenum("kdissect.response_packet", "response_packet", base.NONE,
        frametype.RESPONSE, 0, "The packet that completed the response"),
}
local types = {request_packet = "frame", response_packet = "frame"}
for _, column in ipairs(columns) do
    local name, kind, meaning = column[1], column[2], column[3]
    types[name] = kind
    if of_number[kind] then
        by_name[name] = ProtoField.int64("kdissect." .. name, name, base.DEC, nil, 0, meaning)
    elseif kind == "bool" then
        by_name[name] = ProtoField.bool("kdissect." .. name, name, base.NONE, nil, 0, meaning)
    else
        by_name[name] = ProtoField.string("kdissect." .. name, name, base.UNICODE, meaning)
    end
end
for name, field in pairs(by_name) do
    fields["of_" .. name] = field
end
kdissect.fields = fields

local severities = {
    critical = ProtoExpert.new("kdissect.expert.critical", "kdissect: a critical finding",
        expert.group.PROTOCOL, expert.severity.ERROR),
    warning = ProtoExpert.new("kdissect.expert.warning", "kdissect: a warning",
        expert.group.PROTOCOL, expert.severity.WARN),
    notice = ProtoExpert.new("kdissect.expert.notice", "kdissect: a notice",
        expert.group.PROTOCOL, expert.severity.NOTE),
    info = ProtoExpert.new("kdissect.expert.info", "kdissect: information",
        expert.group.PROTOCOL, expert.severity.CHAT),
}
kdissect.experts = severities

-- The end of the value in quotes that begins at a place, and the value without its backslashes.
local function quoted(text, at)
    local out = {}
    while at <= #text do
        local letter = text:sub(at, at)
        if letter == '"' then
            return table.concat(out), at + 1
        end
        if letter == "\\" then
            at = at + 1
            letter = text:sub(at, at)
        end
        out[#out + 1] = letter
        at = at + 1
    end
    return table.concat(out), at
end

-- name=value name="a value" … as a list of pairs; what has another form ends it.
local function pairs_of(text)
    local found, at = {}, 1
    while true do
        local name, behind = text:match("^%s*([%w_]+)=()", at)
        if not name then
            return found
        end
        local value
        if text:sub(behind, behind) == '"' then
            value, at = quoted(text, behind + 1)
        else
            value, at = text:match("^(%S*)()", behind)
        end
        found[#found + 1] = {name, value}
    end
end

local units = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}}

local function duration(ns)
    for _, unit in ipairs(units) do
        if math.abs(ns) >= unit[1] then
            return string.format("%.4g %s", ns / unit[1], unit[2])
        end
    end
    return string.format("%d ns", ns)
end

-- What a capture's comments hold, as text that neither moves the cursor of a terminal nor turns the direction of
-- writing around. Comments of kdissect are plain already; those of others may look like them.
local invisible = {
    "\194\173",  -- U+00AD
    "\205\143",  -- U+034F
    "\216\156",  -- U+061C
    "\225\133[\159\160]",  -- U+115F, U+1160
    "\225\160[\139-\143]",  -- U+180B to U+180F
    "\226\160\128",  -- U+2800
    "\227\133\164",  -- U+3164
    "\239\184[\128-\143]",  -- U+FE00 to U+FE0F
    "\239\187\191",  -- U+FEFF
    "\239\190\160",  -- U+FFA0
    "\239\191[\185-\187]",  -- U+FFF9 to U+FFFB
    "\243\160[\128-\135][\128-\191]",  -- U+E0000 to U+E01FF
}

local function visible(text)
    text = text:gsub("[%z\1-\31\127]", function(letter)
        return string.format("\\x%02x", letter:byte())
    end)
    text = text:gsub("\194[\128-\159]", "?")
    text = text:gsub("\226\128[\139-\143\168-\174]", "?")
    text = text:gsub("\226\129[\160-\175]", "?")
    for _, hidden in ipairs(invisible) do
        text = text:gsub(hidden, "?")
    end
    return text
end

local function is_number(value)
    return #value <= 18 and value:match("^%-?%d+$") ~= nil
end

local function add_value(tree, name, value)
    local field, kind = by_name[name], types[name]
    if not field then
        return
    end
    if kind == "frame" then
        if is_number(value) then
            tree:add(field, tonumber(value)):set_generated()
        end
    elseif of_number[kind] then
        if is_number(value) then
            local item = tree:add(field, Int64(value))
            item:set_generated()
            if name:match("_ns$") then
                item:append_text(" (" .. duration(tonumber(value)) .. ")")
            end
        end
    elseif kind == "bool" then
        tree:add(field, value == "true"):set_generated()
    else
        tree:add(field, value):set_generated()
    end
end

local function add_exchange(tree, what, text)
    local found = pairs_of(text)
    local known = {}
    for _, pair in ipairs(found) do
        known[pair[1]] = known[pair[1]] or pair[2]
    end
    local title = what .. " " .. (known.number or "?") .. ": " .. (known.api or "?")
    if known.api_version then
        title = title .. " v" .. known.api_version
    end
    if known.error then
        title = title .. ", " .. known.error
    end
    local branch = tree:add(kdissect, title)
    branch:set_generated()
    for _, pair in ipairs(found) do
        add_value(branch, pair[1], pair[2])
    end
    return title
end

local function add_finding(tree, severity, id, message)
    local branch = tree:add(fields.finding, id)
    branch:set_generated()
    branch:append_text(" (" .. severity .. ")")
    branch:add(fields.severity, severity):set_generated()
    branch:add(fields.message, message):set_generated()
    branch:add_proto_expert_info(severities[severity], id .. ": " .. message)
    return severity .. " " .. id
end

function kdissect.dissector(_, _, tree)
    local top
    local titles = {}
    for _, comment in ipairs({comments()}) do
        local text = visible(tostring(comment.value))
        local what, rest = text:match("^kdissect (%l+): (.*)$")
        local severity, id, message = text:match("^kdissect (%l+) ([%w-]+): (.*)$")
        if what == "exchange" or what == "request" then
            top = top or tree:add(kdissect)
            titles[#titles + 1] = add_exchange(top, what, rest)
        elseif severity and severities[severity] then
            top = top or tree:add(kdissect)
            titles[#titles + 1] = add_finding(top, severity, id, message)
        end
    end
    if top then
        top:append_text(": " .. table.concat(titles, "; "))
        top:set_generated()
    end
end

register_postdissector(kdissect)
