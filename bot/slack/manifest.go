package slack

import _ "embed"

//go:embed manifest.json
var manifest string

// Manifest is the manifest of a Slack app with the scopes, events and shortcuts that this adapter uses and no others, as
// JSON. Slack makes an app from it under "Create New App", "From a manifest"; the app-level token with the scope
// connections:write, which no manifest can ask for, is made there afterwards.
func Manifest() string { return manifest }
