<?php

/** A guard for programs (MemberProvider). */

declare(strict_types=1);

return ['defaults' => ['guard' => 'member'], 'guards' => ['member' => ['driver' => 'member']], 'providers' => []];
